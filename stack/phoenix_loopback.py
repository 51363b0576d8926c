"""Phoenix with all its listeners on loopback: that of OTLP over gRPC binds every address, whatever PHOENIX_HOST says."""

import sys

import grpc.aio._server as grpc_server

bind = grpc_server.Server.add_insecure_port


def bind_loopback(self, address):
    return bind(self, "127.0.0.1:" + address.rpartition(":")[2])


grpc_server.Server.add_insecure_port = bind_loopback

from phoenix.server.main import main  # noqa: E402  (it must meet the listener above)

sys.argv = ["phoenix", *sys.argv[1:]]
sys.exit(main())
