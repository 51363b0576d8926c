package rig

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

// Quernd is a running service.
type Quernd struct {
	*Process

	API, Admin string // addresses
	Location   *Location
	vacate     func() // removes everything in the location
	Work       string // the work folder

	environment []string
}

// StartQuernd migrates the database and starts the service on it and on a new location in the object store, with its
// defaults except for the given settings.
func (b *Bench) StartQuernd(ctx context.Context, databaseURL string, settings ...string) (*Quernd, error) {
	issuer, err := issuerURL()
	if err != nil {
		return nil, err
	}

	location, vacate, err := NewLocation(ctx)
	if err != nil {
		return nil, err
	}

	work, err := os.MkdirTemp(b.Dir, "work-")
	if err != nil {
		return nil, err
	}

	environment := slices.Concat([]string{
		"QUERN_DATABASE_URL=" + databaseURL,
		"QUERN_DATABASE_MAX_CONNS=" + strconv.Itoa(PoolSize),
		"QUERN_OIDC_ISSUER=" + issuer,
		"QUERN_OIDC_AUDIENCE=quern",
		"QUERN_SECRET=" + rand.Text() + rand.Text(),
		"QUERN_PUBLIC_URL=http://127.0.0.1",
		"QUERN_LISTEN_ADDR=127.0.0.1:0",
		"QUERN_ADMIN_ADDR=127.0.0.1:0",
		"QUERN_DRAIN_DELAY=0s",
		"QUERN_MAINTENANCE_WORKERS=0", // measures of maintenance override it
		"QUERN_SANDBOX_DIR=" + work,
	}, location.settings(), settings)

	migrate := exec.CommandContext(ctx, b.Quernd, "migrate")
	migrate.Env = environment

	if out, err := migrate.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("quernd migrate: %w\n%s", err, out)
	}

	return b.serve(ctx, &Quernd{Location: location, vacate: vacate, Work: work, environment: environment})
}

// StartReplica starts another replica of the same service, with the given settings in addition.
func (b *Bench) StartReplica(ctx context.Context, beside *Quernd, settings ...string) (*Quernd, error) {
	work, err := os.MkdirTemp(b.Dir, "work-")
	if err != nil {
		return nil, err
	}

	environment := slices.Concat(beside.environment, []string{"QUERN_SANDBOX_DIR=" + work}, settings)

	return b.serve(ctx, &Quernd{Location: beside.Location, vacate: func() {}, Work: work, environment: environment})
}

func (b *Bench) serve(ctx context.Context, service *Quernd) (*Quernd, error) {
	started, err := b.start(ctx, service.environment, b.Quernd, "serve")
	if err != nil {
		return nil, err
	}

	service.Process = started
	if err := service.wait(ctx); err != nil {
		service.Stop()

		return nil, fmt.Errorf("starting quernd: %w", err)
	}

	return service, nil
}

// Stop ends the service and removes its files.
func (q *Quernd) Stop() {
	q.Process.Stop()
	q.vacate()

	if err := os.RemoveAll(q.Work); err != nil {
		fmt.Fprintln(os.Stderr, "removing the files on their way:", err)
	}
}

func (q *Quernd) wait(ctx context.Context) (err error) {
	if q.API, err = q.Address(ctx, "api"); err != nil {
		return err
	}

	if q.Admin, err = q.Address(ctx, "admin"); err != nil {
		return err
	}

	ready, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+q.API+"/readyz", nil)
	if err != nil {
		return err
	}

	for end := time.Now().Add(startTimeout); ; time.Sleep(50 * time.Millisecond) {
		if _, err = Get(ready); err == nil || time.Now().After(end) {
			return err
		}
	}
}

const profileTime = 5 * time.Second

// ProfileDuring writes a CPU profile of the service while work runs. It does nothing without -profile.
func (b *Bench) ProfileDuring(ctx context.Context, name string, q *Quernd, work func(ctx context.Context, lasting time.Duration) error) error {
	if b.Profile == "" {
		return nil
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", q.Admin, int(profileTime.Seconds())), nil)
	if err != nil {
		return err
	}

	worked := make(chan error, 1)
	go func() { worked <- work(ctx, profileTime) }()

	profile, err := Get(request)
	if failed := <-worked; failed != nil {
		return failed
	}

	if err != nil {
		return err
	}

	if err := os.MkdirAll(b.Profile, 0o755); err != nil {
		return err
	}

	file := filepath.Join(b.Profile, name+".prof")
	fmt.Fprintln(os.Stderr, "profile:", file)

	return os.WriteFile(file, profile, 0o644)
}
