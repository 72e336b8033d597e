"""Line of versions: a step up and a step down between each release's schema and the next, oldest first.

v1_v2.py … v8_2_v8_6.py, minor.py   the steps; compact_traces.py: the side line of schema 5.3
expressions.py, metadata.py, treespecs.py, constants.py, attention.py, hop_names.py, hop_outputs.py
                                    what several steps change, one subject each
"""
