package rig

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"
)

// StartTwin starts this program as the bare twin of a measure. The twin reads its parameters from the environment.
func (b *Bench) StartTwin(ctx context.Context, name string, environment ...string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}

	return b.start(ctx, environment, self, "-twin", name)
}

// ServeTwin serves until ctx ends, and logs its address in the format of quernd.
func ServeTwin(ctx context.Context, handler http.Handler) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}

	slog.New(slog.NewJSONHandler(os.Stderr, nil)).InfoContext(ctx, "listening", "what", "api", "address", listener.Addr().String())

	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()

	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}

	return nil
}
