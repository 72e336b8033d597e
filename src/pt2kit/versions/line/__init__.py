"""Line of versions: a step up and a step down between each release's schema and the next, oldest first.

v1_v2.py         schema 1 (torch 2.1) <-> 2 (torch 2.2)
v2_v5_1.py       2 <-> 5.1 (torch 2.3)
v5_1_v5_3.py     5.1 <-> 5.3 (torch 2.4); compact stack traces of schema 5.3
v5_3_v7_3.py     5.3 <-> 7.3 (torch 2.5)
v7_3_v8_2.py     7.3 <-> 8.2 (torch 2.6)
v8_2_v8_6.py     8.2 <-> 8.6
minor.py         the minor versions of schema 8

texts.py         symbolic expressions, names of symbols, tree specs
metadata.py      node metadata
constants.py     constants inside the graphs of schema 1
hops.py          names, results and arguments of higher-order operators
"""
