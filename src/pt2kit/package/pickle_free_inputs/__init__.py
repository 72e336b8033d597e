"""Sample inputs without a pickle: a JSON index and raw records <-> what the reader of pickles would have given."""
