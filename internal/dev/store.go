package dev

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"
)

// Bucket is the bucket of the service.
const Bucket = "quern"

// Store is an S3 server on a folder: versitygw.
type Store struct {
	*Process

	Endpoint string
}

var errNoStore = errors.New("the S3 server versitygw is neither in the folder of quernd nor in PATH: build it with `make dev`, " +
	"or copy a released program there")

// StartStore runs the object store on its part of the folder.
func (f *Folder) StartStore(ctx context.Context) (*Store, error) {
	path, err := find("versitygw")
	if err != nil {
		return nil, errNoStore
	}

	data, access, pidFile := f.File("store", "data"), f.File("store", "iam"), f.File("store", "pid")
	for _, folder := range []string{data + "/" + Bucket, access} { // versitygw serves each folder there as a bucket
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, err
		}
	}

	if err := endLeftover(pidFile, data, syscall.SIGTERM); err != nil {
		return nil, err
	}

	port, err := f.storePort(ctx)
	if err != nil {
		return nil, err
	}

	process, err := program{
		name: "versitygw", path: path, log: f.File("store", "log"), polite: syscall.SIGTERM,
		args: []string{"--quiet", "--keep-alive", "--health", "/health", "--port", Loopback(port), "--iam-dir", access, "posix", data},
		env:  []string{"ROOT_ACCESS_KEY=" + f.State.AccessKey, "ROOT_SECRET_KEY=" + f.State.SecretKey},
	}.start()
	if err != nil {
		return nil, err
	}

	store := &Store{Process: process, Endpoint: "http://" + Loopback(port)}
	if err := os.WriteFile(pidFile, fmt.Appendf(nil, "%d\n", process.command.Process.Pid), 0o600); err != nil {
		store.Stop()

		return nil, err
	}

	if err := process.await(ctx, func() bool { return answers(ctx, store.Endpoint+"/health") }); err != nil {
		store.Stop()

		if strings.Contains(err.Error(), "xattr") {
			err = fmt.Errorf("%w\nThe file system of %s does not support extended attributes: choose a folder on another file system with --dir", err, f.Path)
		}

		return nil, err
	}

	return store, nil
}

// storePort returns the port of the last start, so that connections to the store keep working, or another one if that is taken.
func (f *Folder) storePort(ctx context.Context) (port int, err error) {
	if f.State.StorePort != 0 && CheckPort(ctx, f.State.StorePort, "--dir") == nil {
		return f.State.StorePort, nil
	}

	if f.State.StorePort, err = freePort(ctx); err != nil {
		return 0, err
	}

	return f.State.StorePort, f.Keep()
}

// answers reports whether a server responds at the address. It uses no proxy.
func answers(ctx context.Context, address string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false
	}

	transport := &http.Transport{DisableKeepAlives: true}
	client := &http.Client{Transport: transport, Timeout: time.Second}

	response, err := client.Do(request)
	if err != nil {
		return false
	}

	_ = response.Body.Close()

	return response.StatusCode == http.StatusOK
}
