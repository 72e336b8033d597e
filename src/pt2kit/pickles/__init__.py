"""Read and write `torch.save` files as data: plain values and descriptions of tensors. Nothing is run or imported.

reader.py                 a payload -> its values: `read_payload`; container.py finds the pickle stream in it
scan.py                   the stream -> every global that it refers to, refused or allowed (allowed_globals.py)
opcodes.py, machine.py    the opcodes of all protocols over an explicit stack and memo
builder.py                a stream of allowed globals -> its value, by the reducers:
  builtin_reducers.py       Python's containers, torch's sizes, devices, named results
  tensor_reducers.py        dense tensors and parameters; tensor_kind_reducers.py: sparse, quantized, nested, meta
  numpy_reducers.py         arrays, scalars and dtypes of numpy
values.py                 the results: frozen descriptions
value_limits.py           no cycles, not too deep, not too large
budget.py                 the limits of one reading
writer.py                 descriptions of tensors in plain containers -> a torch.save file
"""
