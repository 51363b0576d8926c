package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"quern.dev/quern/api"
	"quern.dev/quern/stack"
)

const startTimeout = time.Minute

// start builds quernd, or takes the program that EVAL_QUERND names, and runs it with its own database and location beside the stack, with the models of the
// environment or the scripted one. stop ends the process and removes its data.
func start(ctx context.Context, o *options, script *script) (s *service, stop func(), err error) {
	var undo []func()

	stop = func() {
		for _, one := range slices.Backward(undo) {
			one()
		}
	}

	defer func() {
		if err != nil {
			stop()
		}
	}()

	dir, err := os.MkdirTemp("", "quern-eval-")
	if err != nil {
		return nil, nil, err
	}

	undo = append(undo, func() { _ = os.RemoveAll(dir) })

	settings, vacate, err := newPlace(ctx)
	if err != nil {
		return nil, stop, err
	}

	undo = append(undo, vacate)

	database, drop, err := stack.CreateDatabase(ctx, "eval")
	if err != nil {
		return nil, stop, err
	}

	undo = append(undo, drop)

	models, silence, err := modelSettings(ctx, o, script)
	if err != nil {
		return nil, stop, err
	}

	undo = append(undo, silence)

	keycloak, err := stack.Lookup("QUERN_TEST_KEYCLOAK_URL")
	if err != nil {
		return nil, stop, err
	}

	issuer := keycloak + "/realms/quern"
	settings = slices.Concat(settings, models, []string{
		"QUERN_DATABASE_URL=" + database, "QUERN_OIDC_ISSUER=" + issuer, "QUERN_OIDC_AUDIENCE=quern", "QUERN_OIDC_TIMEOUT=20s",
		"QUERN_SECRET=" + rand.Text() + rand.Text(), "QUERN_PUBLIC_URL=http://127.0.0.1", "QUERN_LISTEN_ADDR=127.0.0.1:0",
		"QUERN_ADMIN_ADDR=127.0.0.1:0", "QUERN_DRAIN_DELAY=0s", "QUERN_SANDBOX_DIR=" + filepath.Join(dir, "work"),
		"QUERN_MAINTENANCE_INTERVAL=1s", "QUERN_MAINTENANCE_QUIET_PERIOD=1s",
	})

	address, end, err := runQuernd(ctx, dir, settings)
	if err != nil {
		return nil, stop, err
	}

	undo = append(undo, end)

	token, err := signIn(ctx, issuer, address)
	if err != nil {
		return nil, stop, err
	}

	s, err = newService(ctx, address, token)

	return s, stop, err
}

// runQuernd builds the service, starts it and returns its address when it is ready.
func runQuernd(ctx context.Context, dir string, settings []string) (address string, end func(), err error) {
	if err := os.Mkdir(filepath.Join(dir, "work"), 0o700); err != nil {
		return "", nil, err
	}

	program := os.Getenv("EVAL_QUERND")
	if program == "" {
		if program, err = stack.Build(ctx, dir); err != nil {
			return "", nil, err
		}
	}

	migrate := exec.CommandContext(ctx, program, "migrate")
	migrate.Env = settings

	if out, err := migrate.CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("quernd migrate: %w\n%s", err, out)
	}

	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return "", nil, err
	}
	defer log.Close()

	// The service must finish its requests, so it does not end with the signal that ends this program.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))

	serve := exec.CommandContext(running, program, "serve")
	serve.Env, serve.Stderr = settings, log
	serve.Cancel = func() error { return serve.Process.Signal(syscall.SIGTERM) }
	serve.WaitDelay = startTimeout
	serve.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}

	if err := serve.Start(); err != nil {
		cancel()

		return "", nil, err
	}

	end = func() {
		cancel()

		_ = serve.Wait() // this program ended the process
	}

	if address, err = awaitReady(ctx, log.Name()); err != nil {
		end()
	}

	return address, end, err
}

// awaitReady finds the address of the service in its log and waits until the service is ready.
func awaitReady(ctx context.Context, log string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	for {
		written, err := os.ReadFile(log)
		if err != nil {
			return "", err
		}

		for line := range bytes.Lines(written) {
			var entry struct{ Msg, What, Address string }
			if json.Unmarshal(line, &entry) != nil || entry.Msg != "listening" || entry.What != "api" {
				continue
			}

			if address := "http://" + entry.Address; get(ctx, address+"/readyz", nil) == nil {
				return address, nil
			}
		}

		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return "", fmt.Errorf("waiting for quernd: %w\n%s", err, written)
		}
	}
}

// get requests an address and decodes the JSON response, unless answer is nil.
func get(ctx context.Context, address string, answer any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}

	return do(request, answer)
}

func do(request *http.Request, answer any) error {
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()

	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}

	if answer == nil {
		return nil
	}

	return json.NewDecoder(response.Body).Decode(answer)
}

// signIn returns an API token of ada, a user of the stack. The access token of the issuer would expire after minutes.
func signIn(ctx context.Context, issuer, address string) (string, error) {
	form := url.Values{"grant_type": {"password"}, "client_id": {"quern-console"}, "scope": {"openid"}, "username": {"ada"}, "password": {"ada-pw"}}

	request, err := http.NewRequestWithContext(ctx, http.MethodPost, issuer+"/protocol/openid-connect/token", strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}

	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")

	var given struct {
		AccessToken string `json:"access_token"`
	}

	if err := do(request, &given); err != nil {
		return "", fmt.Errorf("signing in: %w", err)
	}

	s, err := newService(ctx, address, given.AccessToken)
	if err != nil {
		return "", err
	}

	made, err := s.api.CreateTokenWithResponse(ctx, nil, api.NewToken{Name: "eval", Role: new(api.NewTokenRoleOwner)})
	if err != nil {
		return "", err
	}

	if made.JSON201 == nil {
		return "", refusal("creating a token", made.HTTPResponse, made.Body)
	}

	return made.JSON201.Token, nil
}
