"""Generated and damaged input: no input may crash the program or leave half-written output.

``python -m tests.fuzz`` (``make fuzz``) runs thousands of cases; the tests run a few hundred.
"""
