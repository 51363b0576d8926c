package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// quernd is a running service of ours.
type quernd struct {
	*process

	api, admin string // addresses
	place      *place
	vacate     func() // the place
	work       string // the folder for files on their way

	environment []string
}

// startQuernd migrates the database and starts the service on it and on a new place in the object store,
// with its defaults but for the settings given.
func (b *bench) startQuernd(ctx context.Context, databaseURL string, settings ...string) (*quernd, error) {
	issuer, err := issuerURL()
	if err != nil {
		return nil, err
	}

	place, vacate, err := newPlace(ctx)
	if err != nil {
		return nil, err
	}

	work, err := os.MkdirTemp(b.dir, "work-")
	if err != nil {
		return nil, err
	}

	environment := slices.Concat([]string{
		"QUERN_DATABASE_URL=" + databaseURL,
		"QUERN_DATABASE_MAX_CONNS=" + strconv.Itoa(poolSize),
		"QUERN_OIDC_ISSUER=" + issuer,
		"QUERN_OIDC_AUDIENCE=quern",
		"QUERN_SECRET=" + rand.Text() + rand.Text(),
		"QUERN_PUBLIC_URL=http://127.0.0.1",
		"QUERN_LISTEN_ADDR=127.0.0.1:0",
		"QUERN_ADMIN_ADDR=127.0.0.1:0",
		"QUERN_DRAIN_DELAY=0s",
		"QUERN_UPKEEP_WORKERS=0", // those that are about it say so
		"QUERN_SANDBOX_DIR=" + work,
	}, place.settings(), settings)

	migrate := exec.CommandContext(ctx, b.quernd, "migrate")
	migrate.Env = environment

	if out, err := migrate.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("quernd migrate: %w\n%s", err, out)
	}

	return b.serve(ctx, &quernd{place: place, vacate: vacate, work: work, environment: environment})
}

// startReplica starts another one beside it, with other settings where these are given.
func (b *bench) startReplica(ctx context.Context, beside *quernd, settings ...string) (*quernd, error) {
	work, err := os.MkdirTemp(b.dir, "work-")
	if err != nil {
		return nil, err
	}

	environment := slices.Concat(beside.environment, []string{"QUERN_SANDBOX_DIR=" + work}, settings)

	return b.serve(ctx, &quernd{place: beside.place, vacate: func() {}, work: work, environment: environment})
}

func (b *bench) serve(ctx context.Context, service *quernd) (*quernd, error) {
	started, err := b.start(ctx, service.environment, b.quernd, "serve")
	if err != nil {
		return nil, err
	}

	service.process = started
	if err := service.wait(ctx); err != nil {
		service.stop()

		return nil, fmt.Errorf("starting quernd: %w", err)
	}

	return service, nil
}

// stop ends the service and removes its files.
func (q *quernd) stop() {
	q.process.stop()
	q.vacate()

	if err := os.RemoveAll(q.work); err != nil {
		fmt.Fprintln(os.Stderr, "removing the files on their way:", err)
	}
}

func (q *quernd) wait(ctx context.Context) (err error) {
	if q.api, err = q.address(ctx, "api"); err != nil {
		return err
	}

	if q.admin, err = q.address(ctx, "admin"); err != nil {
		return err
	}

	ready, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+q.api+"/readyz", nil)
	if err != nil {
		return err
	}

	for end := time.Now().Add(startTimeout); ; time.Sleep(50 * time.Millisecond) {
		if _, err = get(ready); err == nil || time.Now().After(end) {
			return err
		}
	}
}

const profileTime = 5 * time.Second

// profileDuring writes a CPU profile of the service while work runs. Nothing happens unless asked for.
func (b *bench) profileDuring(ctx context.Context, name string, q *quernd, work func(ctx context.Context, lasting time.Duration) error) error {
	if b.profile == "" {
		return nil
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", q.admin, int(profileTime.Seconds())), nil)
	if err != nil {
		return err
	}

	worked := make(chan error, 1)
	go func() { worked <- work(ctx, profileTime) }()

	profile, err := get(request)
	if failed := <-worked; failed != nil {
		return failed
	}

	if err != nil {
		return err
	}

	if err := os.MkdirAll(b.profile, 0o755); err != nil {
		return err
	}

	file := filepath.Join(b.profile, name+".prof")
	fmt.Fprintln(os.Stderr, "profile:", file)

	return os.WriteFile(file, profile, 0o644)
}
