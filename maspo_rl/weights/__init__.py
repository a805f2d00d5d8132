"""Learner to engine: the weights travel through vLLM's transfer interface, versioned, and are proved to have arrived.

`sender` lives in the learner, `receiver` in the engine's worker process; the two meet in the backend named by
`weights.backend` (shared memory on one CPU machine, CUDA IPC on shared GPUs, NCCL between GPUs).
"""
