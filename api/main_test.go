package api_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"quern.dev/quern/api"
	"quern.dev/quern/stack"
)

// TestMain starts a service for the examples, unless the flag -run asks for tests only.
func TestMain(m *testing.M) {
	flag.Parse()

	if run := flag.Lookup("test.run").Value.String(); run != "" && !strings.Contains(run, "Example") {
		os.Exit(m.Run())
	}

	ctx, cancel := context.WithTimeout(context.Background(), 9*time.Minute)

	s := &service{}
	err := s.start(ctx)
	status := 1

	if err == nil {
		status = m.Run()
	}

	err = errors.Join(err, s.stop(ctx))

	cancel()

	if err != nil {
		fmt.Fprintln(os.Stderr, "the service for the examples:", err)

		status = 1
	}

	os.Exit(status)
}

// service is a quernd with its own database and its own location in the object store.
type service struct {
	dir      string // for the program and its work folder
	drop     func() // removes the database
	store    map[string]string
	settings []string
	process  *exec.Cmd
	issuer   string
}

// start builds and starts quernd, signs ada in, and loads the rows that the examples read. QUERN_URL and QUERN_TOKEN then
// say how to reach it.
func (s *service) start(ctx context.Context) error {
	if err := s.prepare(ctx); err != nil {
		return err
	}

	program, err := stack.Build(ctx, s.dir)
	if err != nil {
		return err
	}

	migrate := exec.CommandContext(ctx, program, "migrate")
	migrate.Env = s.settings

	if out, err := migrate.CombinedOutput(); err != nil {
		return fmt.Errorf("quernd migrate: %w\n%s", err, out)
	}

	s.process = exec.CommandContext(ctx, program, "serve")
	s.process.Env = s.settings

	log, err := s.process.StderrPipe()
	if err != nil {
		return err
	}

	if err := s.process.Start(); err != nil {
		return err
	}

	address, err := listening(log)
	if err != nil {
		return err
	}

	go func() { _, _ = io.Copy(io.Discard, log) }() // until the process ends

	return s.fill(ctx, address)
}

func (s *service) prepare(ctx context.Context) (err error) {
	if s.dir, err = os.MkdirTemp("", "quern-api-"); err != nil {
		return err
	}

	work := filepath.Join(s.dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		return err
	}

	database, drop, err := stack.CreateDatabase(ctx, "api")
	if err != nil {
		return err
	}

	s.drop = drop

	keycloak, err := stack.Lookup("QUERN_TEST_KEYCLOAK_URL")
	if err != nil {
		return err
	}

	s.issuer = keycloak + "/realms/quern"
	s.settings = []string{
		"QUERN_DATABASE_URL=" + database, "QUERN_OIDC_ISSUER=" + s.issuer, "QUERN_OIDC_AUDIENCE=quern", "QUERN_SECRET=" + rand.Text() + rand.Text(),
		"QUERN_PUBLIC_URL=http://127.0.0.1", "QUERN_LISTEN_ADDR=127.0.0.1:0", "QUERN_ADMIN_ADDR=127.0.0.1:0", "QUERN_DRAIN_DELAY=0s",
		"QUERN_MAINTENANCE_WORKERS=0", "QUERN_SANDBOX_DIR=" + work,
	}
	s.store = map[string]string{"PREFIX": "api/" + rand.Text() + "/"}

	for _, name := range []string{"ENDPOINT", "REGION", "BUCKET", "ACCESS_KEY", "SECRET_KEY"} {
		if s.store[name], err = stack.Lookup("QUERN_TEST_S3_" + name); err != nil {
			return err
		}
	}

	for name, value := range s.store {
		s.settings = append(s.settings, "QUERN_S3_"+name+"="+value)
	}

	return nil
}

// listening returns the address in the log of the service.
func listening(log io.Reader) (string, error) {
	var written strings.Builder

	for lines := bufio.NewScanner(log); lines.Scan(); {
		var entry struct{ Msg, What, Address string }
		if json.Unmarshal(lines.Bytes(), &entry) == nil && entry.Msg == "listening" && entry.What == "api" {
			return "http://" + entry.Address, nil
		}

		fmt.Fprintln(&written, lines.Text())
	}

	return "", fmt.Errorf("quernd ended:\n%s", &written)
}

func (s *service) fill(ctx context.Context, address string) error {
	access, err := s.signIn(ctx)
	if err != nil {
		return fmt.Errorf("signing in: %w", err)
	}

	client, err := api.Connect(api.Settings{Server: address, Token: func(context.Context) (string, error) { return access, nil }})
	if err != nil {
		return err
	}

	token, err := api.Read[api.CreatedToken](client.CreateToken(ctx, nil, api.NewToken{Name: "examples", Role: new(api.NewTokenRoleOwner)}))
	if err != nil {
		return err
	}

	if _, err := api.Read[api.Dataset](client.CreateDataset(ctx, "shop", "orders", nil, api.InferDefinitionChange{})); err != nil {
		return err
	}

	orders := api.NewRows{Data: []api.Row{{"region": "north", "amount": 3}, {"region": "south", "amount": 5}, {"region": "north", "amount": 4}}}
	if _, err := api.Read[api.Indexed](client.IngestRows(ctx, "shop", "orders", nil, orders)); err != nil {
		return err
	}

	return errors.Join(os.Setenv("QUERN_URL", address), os.Setenv("QUERN_TOKEN", token.Token))
}

// signIn returns an access token of ada, a user of the stack.
func (s *service) signIn(ctx context.Context) (string, error) {
	form := url.Values{"grant_type": {"password"}, "client_id": {"quern-console"}, "scope": {"openid"}, "username": {"ada"}, "password": {"ada-pw"}}

	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.issuer+"/protocol/openid-connect/token", strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}

	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")

	given, err := api.Read[struct {
		AccessToken string `json:"access_token"`
	}](http.DefaultClient.Do(request))

	return given.AccessToken, err
}

// stop ends the process and removes its data.
func (s *service) stop(ctx context.Context) (err error) {
	if s.process != nil && s.process.Process != nil {
		err = errors.Join(s.process.Process.Signal(syscall.SIGTERM), s.process.Wait(), s.empty(ctx))
	}

	if s.drop != nil {
		s.drop()
	}

	return errors.Join(err, os.RemoveAll(s.dir))
}

// empty removes all objects of the location.
func (s *service) empty(ctx context.Context) error {
	client := s3.New(s3.Options{
		BaseEndpoint: new(s.store["ENDPOINT"]), Region: s.store["REGION"], UsePathStyle: true,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: s.store["ACCESS_KEY"], SecretAccessKey: s.store["SECRET_KEY"]}, nil
		}),
	})

	for objects := s3.NewListObjectsV2Paginator(client, &s3.ListObjectsV2Input{Bucket: new(s.store["BUCKET"]), Prefix: new(s.store["PREFIX"])}); objects.HasMorePages(); {
		page, err := objects.NextPage(ctx)
		if err != nil {
			return err
		}

		for _, object := range page.Contents {
			if _, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: new(s.store["BUCKET"]), Key: object.Key}); err != nil {
				return err
			}
		}
	}

	return nil
}
