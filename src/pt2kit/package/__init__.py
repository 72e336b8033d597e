"""Read a `.pt2` file as a `Package`: its programs, payloads and records, each read on first access; and write it.

zip -> layout -> codec -> versions -> objects of the current schema. No layer above reads bytes.

    open.py                `open_package` -> `Package`
    layouts/               one class for each arrangement of records
    record_names.py        names of records inside a file
    programs.py            the record of a program -> `StoredProgram`, of the current schema version
    legacy_programs.py     the same for programs up to torch 2.8 and those of no release; imported for those alone
    payloads.py            weights and constants -> views by name
    stored.py              results of reading: `StoredProgram`, `StoredPayloads`, and the container they were in
    external.py            payloads in files next to the archive
    external_list.py       the list of those files
    samples.py             the stored sample inputs -> plain containers with views in them
    pickle_free_inputs.py  sample inputs without a pickle: leaves in an index, tensors in raw records with a config
    plan.py                records of a new archive as data
    write.py               a package, with some programs replaced -> a new file; weights next to it
"""
