"""What attention costs, counted with a pencil and measured on a machine.

`counts` has parameters and FLOPs, `memory` bytes, `generation` the work that a cache saves, `configurations` real
models with their sources, `roofline` what a machine can do with all that. `measure` takes time and peak memory,
`baselines` is what is compared with, and `records` keeps measured results. Import the module you want; importing this
package loads none of them.
"""
