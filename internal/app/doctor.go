package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"quern.dev/quern/internal/config"
	"quern.dev/quern/internal/disk"
	"quern.dev/quern/internal/sandbox"
)

// Examination contains the options of `quernd doctor`.
type Examination struct {
	Token string // access token of the issuer to check; may be empty
	JSON  bool
}

// finding is one line of the doctor's report.
type finding struct {
	Status string `json:"status"`
	Check  string `json:"check"`
	Found  string `json:"found"`
	Fix    string `json:"fix,omitempty"`
}

const (
	statusOK   = "ok"
	statusWarn = "warn"
	statusFail = "fail"
)

// checkTime is the longest duration of a check, and modelTime is the longest duration of a check of a model.
const (
	checkTime = 15 * time.Second
	modelTime = 45 * time.Second
)

// doctor checks the settings and the systems that they refer to. It writes only objects and files of its own, and
// removes them.
type doctor struct {
	config config.Serve
	token  string
	log    *slog.Logger
}

// check is one check and its time limit.
type check struct {
	name string
	time time.Duration
	look func(ctx context.Context) []finding
}

// Doctor checks the settings and the systems that they refer to, and prints one line for each finding, with a fix if
// there is a problem. It returns an error if a check failed.
func Doctor(ctx context.Context, environ []string, how Examination, out io.Writer) error {
	c, err := config.Read[config.Serve](lookup(environ))
	d := doctor{config: c, token: how.Token, log: slog.New(slog.DiscardHandler)}

	findings := append(settingsFound(err, environ), examine(ctx, d.checks())...)
	failed := 0

	for i := range findings {
		findings[i].Found, findings[i].Fix = d.discreet(findings[i].Found), d.discreet(findings[i].Fix)

		if findings[i].Status == statusFail {
			failed++
		}
	}

	if err := printFindings(findings, how.JSON, out); err != nil {
		return err
	}

	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(findings))
	}

	return nil
}

// checks returns the checks whose settings are present; the finding for the settings already names the missing ones.
func (d doctor) checks() []check {
	c := d.config
	list := []check{{"sandbox", checkTime, d.sandbox}, {"sandbox folder", checkTime, d.folder}}

	if c.Database.URL.Reveal() != "" {
		list = append(list, check{"database", checkTime, d.database})
	}

	if c.S3.Endpoint != "" && c.S3.Bucket != "" && c.S3.AccessKey.Reveal() != "" && c.S3.SecretKey.Reveal() != "" {
		list = append(list, check{"object store", checkTime, d.store}, check{"public store", checkTime, d.publicStore})
	}

	if c.OIDC.Issuer != "" && len(c.OIDC.Audience) > 0 {
		list = append(list, check{"issuer", checkTime, d.issuer}, check{"token", checkTime, d.examineToken})
	}

	for _, provider := range c.Model.Providers {
		for _, model := range provider.Models {
			list = append(list, check{"model " + provider.Name + "/" + model, modelTime, func(ctx context.Context) []finding {
				return d.model(ctx, provider, model)
			}})
		}
	}

	if c.Trino.URL != "" {
		list = append(list, check{"trino", modelTime, d.trino})
	}

	if c.Tracing.Kind != "none" && c.Tracing.Kind != "" {
		list = append(list, check{"tracing", checkTime, d.tracing})
	}

	return append(list, check{"clock", checkTime, d.clock})
}

// examine runs all checks at the same time.
func examine(ctx context.Context, checks []check) (findings []finding) {
	found := make([][]finding, len(checks))

	var all sync.WaitGroup

	for i, one := range checks {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, one.time)
			defer cancel()

			done := make(chan []finding, 1)
			go func() { done <- one.look(ctx) }()

			select {
			case found[i] = <-done:
			case <-time.After(one.time + time.Second): // the check ignored its deadline
				found[i] = []finding{fail(one.name, "the check did not finish within "+one.time.String(), "check whether the system that it calls responds")}
			}
		})
	}

	all.Wait()

	for _, list := range found {
		findings = append(findings, list...)
	}

	return findings
}

// problem returns the finding as an error that begins with of, unless of is empty.
func (f finding) problem(of string) error {
	text := f.Found + "; " + f.Fix
	if of != "" {
		text = of + ": " + text
	}

	return errors.New(text)
}

func good(name, found string) finding { return finding{Status: statusOK, Check: name, Found: found} }

func warn(name, found, fix string) finding {
	return finding{Status: statusWarn, Check: name, Found: found, Fix: fix}
}

func fail(name, found, fix string) finding {
	return finding{Status: statusFail, Check: name, Found: found, Fix: fix}
}

func printFindings(findings []finding, asJSON bool, out io.Writer) error {
	if asJSON {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")

		return encoder.Encode(findings)
	}

	widest := 0
	for _, f := range findings {
		widest = max(widest, len(f.Check))
	}

	for _, f := range findings {
		line := fmt.Sprintf("%-4s  %-*s  %s", f.Status, widest, f.Check, f.Found)
		if f.Fix != "" {
			line += "  → " + f.Fix
		}

		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}

	return nil
}

// discreet returns text on one line, without the secrets in the settings.
func (d doctor) discreet(text string) string {
	c := d.config
	secrets := []string{
		d.token, c.Server.Secret.Reveal(), c.S3.AccessKey.Reveal(), c.S3.SecretKey.Reveal(), c.Tracing.Key.Reveal(), c.Tracing.Headers.Reveal(),
		c.Database.URL.Reveal(), c.Database.DirectURL.Reveal(),
	}

	for _, provider := range c.Model.Providers {
		secrets = append(secrets, provider.Key.Reveal())
	}

	for _, address := range []string{c.Database.URL.Reveal(), c.Database.DirectURL.Reveal()} {
		if u, err := url.Parse(address); err == nil {
			password, _ := u.User.Password()
			secrets = append(secrets, password)
		}
	}

	for _, secret := range secrets {
		if len(secret) >= shortestSecret {
			text = strings.ReplaceAll(text, secret, "[secret]")
		}
	}

	return strings.Join(strings.Fields(text), " ")
}

// shortestSecret prevents a password such as "a" from making every word unreadable.
const shortestSecret = 4

// settingsFound returns the problems with the settings that the start of the service would report.
func settingsFound(err error, environ []string) (findings []finding) {
	joined, _ := err.(interface{ Unwrap() []error })
	if joined != nil {
		for _, problem := range joined.Unwrap() {
			findings = append(findings, fail("settings", problem.Error(), "see docs/configuration.md"))
		}
	}

	for _, name := range config.Unknown(environ) {
		found := "no such setting: " + name
		if nearest := config.Nearest(name, environ); nearest != "" {
			found += "; the most similar is " + nearest
		}

		findings = append(findings, warn("settings", found, "correct or remove it: docs/configuration.md"))
	}

	if len(findings) == 0 {
		findings = append(findings, good("settings", "complete"))
	}

	return findings
}

// sandbox checks the sandbox in a folder of its own, because the service may be running.
func (d doctor) sandbox(context.Context) []finding {
	const name = "sandbox"

	c := d.config.Sandbox

	dir, err := os.MkdirTemp("", "quern-doctor-")
	if err != nil {
		return []finding{fail(name, err.Error(), "set TMPDIR to a writable folder")}
	}
	defer os.RemoveAll(dir)

	c.Dir, c.IdleProcesses = dir, 1

	opened, err := openSandbox(c, nil, d.log)

	switch {
	case errors.Is(err, sandbox.ErrBinary):
		return []finding{fail(name, err.Error(), engineFix+": docs/operations.md, Install")}
	case err != nil:
		return []finding{fail(name, err.Error(), "use a kernel with Landlock and seccomp (docs/operations.md, Sandbox), or lower QUERN_SANDBOX_MIN_ISOLATION")}
	}
	defer opened.Close()

	if tier := opened.Tier().String(); tier == "none" {
		return []finding{warn(name, tier+": a hostile file can do what the service can do", "use a kernel with Landlock and seccomp: docs/operations.md, Sandbox")}
	}

	return []finding{good(name, opened.Tier().String())}
}

// leastDisk is less than an ingestion of any size needs, in bytes.
const leastDisk = 1 << 30

// folder checks whether files can be created in the work folder.
func (d doctor) folder(context.Context) []finding {
	const name = "sandbox folder"

	dir, err := filepath.Abs(d.config.Sandbox.Dir)
	for err == nil {
		if _, err = os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			break
		}

		dir, err = filepath.Dir(dir), nil // the service will create the folder there
	}

	fix := "give the user of the service write access to QUERN_SANDBOX_DIR, or set it to another folder on a local disk"

	if err != nil {
		return []finding{fail(name, err.Error(), fix)}
	}

	probe, err := os.MkdirTemp(dir, ".quern-doctor-")
	if err != nil {
		return []finding{fail(name, err.Error(), fix)}
	}
	defer os.RemoveAll(probe)

	// Files are mounted as hard links, which not every file system supports.
	if err = os.WriteFile(filepath.Join(probe, "a"), nil, 0o600); err == nil {
		err = os.Link(filepath.Join(probe, "a"), filepath.Join(probe, "b"))
	}

	if err != nil {
		return []finding{fail(name, err.Error(), "set QUERN_SANDBOX_DIR to a folder on a local disk with hard links")}
	}

	watched, err := disk.New(disk.Config{
		Dir: dir, ReserveBytes: int64(d.config.Sandbox.ReserveBytes), ReserveInodes: int64(d.config.Sandbox.ReserveFiles), Log: d.log,
	})
	if err != nil {
		return []finding{fail(name, err.Error(), fix)}
	}

	err = watched.Room(0)
	state := watched.State()
	found := fmt.Sprintf("%s, %.1f GB free", d.config.Sandbox.Dir, float64(state.FreeBytes)/1e9)

	switch {
	case err != nil:
		return []finding{warn(name, state.Problem, "free some space, or set QUERN_SANDBOX_DIR to a larger disk: docs/operations.md, When the disk is full")}
	case state.FreeBytes < leastDisk:
		return []finding{warn(name, found, "free some space, or set QUERN_SANDBOX_DIR to a larger disk: docs/operations.md, Sandbox")}
	}

	return []finding{good(name, found)}
}
