"""Named experiments: data, architecture and hyper-parameters that go together."""
