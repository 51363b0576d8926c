"""model_server.py WEIGHTS PORT: serves one model on loopback, with one thread, until it is ended."""

import signal
import sys

import xllamacpp

weights, port = sys.argv[1], int(sys.argv[2])

settings = xllamacpp.CommonParams()
settings.model.path = weights
settings.model_alias = {"smollm2-135m"}
settings.hostnames = ["127.0.0.1"]
settings.port = port
settings.n_ctx = 2048  # such a small model can repeat itself until its context is full
settings.n_parallel = 1
settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
settings.n_gpu_layers = 0
settings.use_jinja = True
settings.warmup = False
settings.fit_params = False

server = xllamacpp.Server(settings)
print("listening on", server.listening_address, flush=True)
signal.pause()
