"""Named experiments: data, architecture and hyper-parameters that go together."""

if __name__ == "examples":
    from causalpima.checkout import alias

    alias(__name__)
