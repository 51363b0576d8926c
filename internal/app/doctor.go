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
	"syscall"
	"time"

	"quern.dev/quern/internal/config"
)

// Examination is how `quernd doctor` looks.
type Examination struct {
	Token string // of the issuer, to be looked at; may be empty
	JSON  bool
}

// finding is one line of the doctor's.
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

// checkTime is the longest time for one check; models take longer.
const (
	checkTime = 15 * time.Second
	modelTime = 45 * time.Second
)

// doctor looks at what the settings lead to. It writes nothing but objects and files of its own, which it removes.
type doctor struct {
	config config.Serve
	token  string
	log    *slog.Logger
}

// check is what one look finds, within its time.
type check struct {
	name string
	time time.Duration
	look func(ctx context.Context) []finding
}

// Doctor says what is wrong with the settings and with what they lead to: one line and one fix each. Its error says that something is.
func Doctor(ctx context.Context, environ []string, how Examination, out io.Writer) error {
	c, err := config.Read[config.Serve](lookup(environ))
	d := doctor{config: c, token: how.Token, log: slog.New(slog.DiscardHandler)}

	findings := append(settingsFound(err, config.Unknown(environ)), examine(ctx, d.checks())...)
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

// checks are those for which there are settings: what is missing is named already.
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

	if c.Tracing.Kind != "none" && c.Tracing.Kind != "" {
		list = append(list, check{"tracing", checkTime, d.tracing})
	}

	return append(list, check{"clock", checkTime, d.clock})
}

// examine makes all checks at the same time.
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
			case <-time.After(one.time + time.Second): // it had its time and did not look
				found[i] = []finding{fail(one.name, "it did not end within "+one.time.String(), "see whether what it leads to answers at all")}
			}
		})
	}

	all.Wait()

	for _, list := range found {
		findings = append(findings, list...)
	}

	return findings
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

// discreet is a text on one line, without any of the secrets of the settings.
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

// shortestSecret keeps a password such as "a" from making every word unreadable.
const shortestSecret = 4

// settingsFound tells what start-up would say of the settings.
func settingsFound(err error, unknown []string) (findings []finding) {
	joined, _ := err.(interface{ Unwrap() []error })
	if joined != nil {
		for _, problem := range joined.Unwrap() {
			findings = append(findings, fail("settings", problem.Error(), "set it as docs/configuration.md says"))
		}
	}

	if len(unknown) > 0 {
		findings = append(findings, warn("settings", "no such setting: "+strings.Join(unknown, ", "), "correct or remove it: docs/configuration.md"))
	}

	if len(findings) == 0 {
		findings = append(findings, good("settings", "complete"))
	}

	return findings
}

// sandbox is looked at in a folder of its own: the service may be running.
func (d doctor) sandbox(context.Context) []finding {
	const name = "sandbox"

	c := d.config.Sandbox

	dir, err := os.MkdirTemp("", "quern-doctor-")
	if err != nil {
		return []finding{fail(name, err.Error(), "set TMPDIR to a folder that can be written")}
	}
	defer os.RemoveAll(dir)

	c.Dir, c.Ready = dir, 1

	opened, err := openSandbox(c, d.log)
	if err != nil {
		return []finding{fail(name, err.Error(), "a kernel with Landlock and seccomp (docs/operations.md, Sandbox), or lower QUERN_SANDBOX_LEAST")}
	}
	defer opened.Close()

	if tier := opened.Tier().String(); tier == "none" {
		return []finding{warn(name, tier+": a hostile file can do what the service can", "a kernel with Landlock and seccomp: docs/operations.md, Sandbox")}
	}

	return []finding{good(name, opened.Tier().String())}
}

// leastDisk is less than one ingestion of any size needs.
const leastDisk = 1 << 30

// folder looks whether files can be made where the service will make them.
func (d doctor) folder(context.Context) []finding {
	const name = "sandbox folder"

	dir, err := filepath.Abs(d.config.Sandbox.Dir)
	for err == nil {
		if _, err = os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			break
		}

		dir, err = filepath.Dir(dir), nil // it will be made there
	}

	fix := "let the user of the service write to QUERN_SANDBOX_DIR, or set it to another folder on a local disk"

	if err != nil {
		return []finding{fail(name, err.Error(), fix)}
	}

	probe, err := os.MkdirTemp(dir, ".quern-doctor-")
	if err != nil {
		return []finding{fail(name, err.Error(), fix)}
	}
	defer os.RemoveAll(probe)

	// Files are handed over as links, which not every file system has.
	if err = os.WriteFile(filepath.Join(probe, "a"), nil, 0o600); err == nil {
		err = os.Link(filepath.Join(probe, "a"), filepath.Join(probe, "b"))
	}

	if err != nil {
		return []finding{fail(name, err.Error(), "set QUERN_SANDBOX_DIR to a folder on a local disk with hard links")}
	}

	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return []finding{fail(name, err.Error(), fix)}
	}

	free := disk.Bavail * uint64(disk.Bsize) //nolint:gosec // a size
	found := fmt.Sprintf("%s, %.1f GB free", d.config.Sandbox.Dir, float64(free)/1e9)

	if free < leastDisk {
		return []finding{warn(name, found, "make room, or set QUERN_SANDBOX_DIR to a larger disk: docs/operations.md, Sandbox")}
	}

	return []finding{good(name, found)}
}
