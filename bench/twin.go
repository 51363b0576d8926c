package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"
)

// startTwin starts this program as the bare twin of a measure. It gets its parameters by the environment.
func (b *bench) startTwin(ctx context.Context, name string, environment ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}

	return b.start(ctx, environment, self, "-twin", name)
}

func beTwin(ctx context.Context, name string) error {
	chosen, err := choose([]string{name})
	if err != nil {
		return err
	}

	if chosen[0].twin == nil {
		return fmt.Errorf("%s has no twin", name)
	}

	return chosen[0].twin(ctx)
}

// serveTwin serves until ctx ends, and says where in the words of quernd.
func serveTwin(ctx context.Context, handler http.Handler) error {
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
