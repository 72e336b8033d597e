"""Read and write `torch.save` files as data: plain values and descriptions of tensors. Nothing is run or imported.

reader.py             `read_payload`: a payload, its pickle stream and its storages -> values; its globals
allowed_globals.py    the globals that a payload may refer to
opcodes.py            the opcodes of all protocols
machine.py            the state of an interpreter: an explicit stack and memo
builder.py            a stream of allowed globals -> its value, by the reducers
builtin_reducers.py   containers of Python; sizes, devices, named results of torch; arrays and dtypes of NumPy
tensor_reducers.py    tensors and parameters: dense, sparse, quantized, nested, meta
tensor_subclasses.py  tensor subclasses of torchao
values.py             the results: frozen descriptions; dtypes, storage classes, layouts of torch
budget.py             the limits of one reading; no cycles, not too deep, not too large; checks of arguments
writer.py             descriptions of tensors in plain containers -> a torch.save file
"""
