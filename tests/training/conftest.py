"""Its being here lets the tests in folders below import what this folder's tests share, such as `tiny_fits`."""
