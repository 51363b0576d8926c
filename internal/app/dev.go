package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/config"
	"quern.dev/quern/internal/dev"
	"quern.dev/quern/internal/signin"
)

// DevOptions are the flags of `quernd dev`.
type DevOptions struct {
	Dir              string
	Port, IssuerPort int  // 0 means the port of the last start
	LeaveCredentials bool // do not sign the command line in
	NoSample         bool
}

// Dev runs the service and everything that it needs, on loopback, until a stop signal. Then it stops the service, the
// object store and PostgreSQL, in this order. A second signal ends this process at once; the next start then ends the
// processes that it left behind.
func Dev(ctx context.Context, environ []string, options DevOptions, out io.Writer) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop)

	d := &development{environ: environ, options: options, out: out}

	path, err := options.Dir, error(nil)
	if path == "" {
		path, err = dev.DefaultFolder(d.getenv)
	}

	if err != nil {
		return err
	}

	if d.folder, err = dev.OpenFolder(path, options.Port, options.IssuerPort); err != nil {
		return err
	}
	defer d.folder.Close()

	if err = d.run(ctx); ctx.Err() != nil { // the stop signal interrupted whatever was in progress
		d.sayf("\nStopped. The data is in %s.", d.folder.Path)

		return nil
	}

	return err
}

// development is one execution of `quernd dev`.
type development struct {
	environ []string
	options DevOptions
	out     io.Writer
	folder  *dev.Folder
	issuer  *dev.Issuer
	console bool // the console is served
}

func (d *development) sayf(format string, args ...any) {
	_, _ = fmt.Fprintf(d.out, format+"\n", args...)
}

func (d *development) getenv(name string) string {
	value, _ := lookup(d.environ)(name)

	return value
}

func (d *development) url() string { return "http://" + dev.Loopback(d.folder.State.Port) }

// origins returns the addresses at which a browser on this machine can open the console.
func (d *development) origins() []string {
	return []string{d.url(), fmt.Sprintf("http://localhost:%d", d.folder.State.Port)}
}

// run starts the parts in order, and stops them in reverse order.
func (d *development) run(ctx context.Context) error {
	state := d.folder.State

	// Check before anything is started that would have to be stopped again.
	err := errors.Join(dev.CheckPort(ctx, state.Port, "--port"), dev.CheckPort(ctx, state.IssuerPort, "--issuer-port and a new --dir"))
	if err != nil {
		return err
	}

	d.issuer, err = dev.ListenIssuer(ctx, dev.Loopback(state.IssuerPort), d.folder.Key(), time.Now)
	if err != nil {
		return err
	}
	defer d.issuer.Close()

	d.issuer.Console = d.origins()

	ended := make(chan error, 4)
	go func() { ended <- d.issuer.Serve() }()

	for _, name := range config.Unknown(d.environ) {
		hint := "docs/configuration.md lists all settings."
		if nearest := config.Nearest(name, d.environ); nearest != "" {
			hint = "Do you mean " + nearest + "?"
		}

		d.sayf("There is no setting %s: it has no effect. %s", name, hint)
	}

	settings := d.settings()

	if d.getenv("QUERN_DATABASE_URL")+d.getenv("QUERN_DATABASE_URL_FILE") == "" {
		d.sayf("Starting PostgreSQL …")

		database, err := d.folder.StartPostgres(ctx)
		if err != nil {
			return err
		}
		defer database.Stop()

		watch(database.Process, ended)

		settings = append(settings, "QUERN_DATABASE_URL="+database.URL)
	}

	d.sayf("Starting the object store …")

	store, err := d.folder.StartStore(ctx)
	if err != nil {
		return err
	}
	defer store.Stop()

	watch(store.Process, ended)

	environ := append(d.withSettings(append(settings, "QUERN_S3_ENDPOINT="+store.Endpoint)), d.sourceSettings(store.Endpoint)...)

	operator, err := NewOperator(environ, io.Discard)
	if err != nil {
		return err
	}

	if err := d.allowUploads(ctx, environ); err != nil {
		return fmt.Errorf("the object store: %w", err)
	}

	if err := operator.Migrate(ctx, ""); err != nil {
		return fmt.Errorf("the database: %w", err)
	}

	return d.serve(ctx, environ, ended)
}

// allowUploads lets the console send files to the object store.
func (d *development) allowUploads(ctx context.Context, environ []string) error {
	inspector, err := NewInspector(environ, io.Discard)
	if err != nil {
		return err
	}

	return inspector.AllowOrigins(ctx, d.origins())
}

func watch(process *dev.Process, ended chan<- error) {
	go func() {
		<-process.Exited()

		ended <- process.Failure()
	}()
}

// serve runs the service until a stop signal, or until a process that it needs has ended.
func (d *development) serve(ctx context.Context, environ []string, ended <-chan error) error {
	c, err := config.Read[config.Serve](lookup(environ))
	if err != nil {
		return err
	}

	logFile := d.folder.File("quernd.log")
	_ = os.Rename(logFile, logFile+".1") // there may be no log of an earlier start

	written, err := os.OpenFile(logFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = written.Close() }()

	d.console = c.Console.Enabled

	service, err := New(ctx, c, newLog(c.Log, written))
	if err != nil {
		return err
	}

	serving, end := context.WithCancel(ctx)
	defer end()

	served, ready := make(chan error, 1), make(chan error, 1)

	go func() { served <- service.Run(serving) }()
	go func() { ready <- d.welcome(serving) }()

	for {
		select {
		case err = <-served:
			return err
		case err = <-ended:
		case err = <-ready:
			if err == nil {
				ready = nil

				continue
			}
		}

		end()

		return errors.Join(err, <-served)
	}
}

// settings returns the settings that development mode sets itself. Other settings of the store and the issuer in the
// environment are ignored.
func (d *development) settings() []string {
	state := d.folder.State

	return []string{
		"QUERN_LISTEN_ADDR=" + dev.Loopback(state.Port), "QUERN_ADMIN_ADDR=" + dev.Loopback(0), "QUERN_PUBLIC_URL=" + d.url(),
		"QUERN_SECRET=" + state.Secret, "QUERN_SANDBOX_DIR=" + d.folder.File("sandbox"),
		"QUERN_OIDC_ISSUER=" + d.issuer.URL, "QUERN_OIDC_AUDIENCE=" + dev.Audience,
		"QUERN_S3_BUCKET=" + dev.Bucket, "QUERN_S3_ACCESS_KEY=" + state.AccessKey, "QUERN_S3_SECRET_KEY=" + state.SecretKey,
	}
}

// operatorGroup is the only setting of the issuer that the environment can set in development mode. All people of its issuer are in the group "dev".
const operatorGroup = "QUERN_OIDC_OPERATOR_GROUP"

// withSettings returns the given settings, then those of the environment, then defaults for interactive use. The first
// value of a name applies.
func (d *development) withSettings(settings []string) []string {
	ours := func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")

		return strings.HasPrefix(name, "QUERN_S3_") || strings.HasPrefix(name, "QUERN_OIDC_") && name != operatorGroup || slices.ContainsFunc(settings, func(setting string) bool {
			made, _, _ := strings.Cut(setting, "=")

			return name == made || name == made+"_FILE"
		})
	}

	return slices.Concat(settings, slices.DeleteFunc(slices.Clone(d.environ), ours), []string{
		"QUERN_DRAIN_DELAY=0s", "QUERN_SHUTDOWN_TIMEOUT=5s", "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s", "QUERN_LOG_FORMAT=text",
	})
}

// sourceSettings returns defaults that let sources load from the object store of development mode.
func (d *development) sourceSettings(endpoint string) (settings []string) {
	for _, setting := range []string{
		"QUERN_SOURCE_KEY=" + d.folder.State.SourceKey, "QUERN_SOURCE_HOSTS=" + strings.TrimPrefix(endpoint, "http://"), "QUERN_SOURCE_ALLOWED_NETWORKS=127.0.0.0/8",
	} {
		if name, _, _ := strings.Cut(setting, "="); d.getenv(name+"_FILE") == "" {
			settings = append(settings, setting)
		}
	}

	return settings
}

// welcome loads the sample, signs the command line in, and prints what the user can do now.
func (d *development) welcome(ctx context.Context) error {
	for !d.ready(ctx) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}

	if err := d.folder.WriteSample(); err != nil {
		return err
	}

	if !d.options.NoSample {
		if err := d.loadSample(ctx); err != nil && ctx.Err() == nil {
			d.sayf("The sample could not be loaded; the next start tries again: %v", err)
		}
	}

	var signedIn dev.SignedIn

	if !d.options.LeaveCredentials {
		home, err := signin.Home(d.getenv)
		if err == nil {
			signedIn, err = d.issuer.SignIn(home, d.url(), dev.SampleFor)
		}

		if err != nil {
			signedIn = dev.SignedIn{Problem: err.Error()}
		}
	}

	if ctx.Err() == nil {
		d.sayf("%s", d.greeting(signedIn))
	}

	return nil
}

func (d *development) loadSample(ctx context.Context) error {
	client, err := api.Connect(api.Settings{Server: d.url(), UserAgent: "quernd-dev", Token: func(context.Context) (string, error) {
		return d.issuer.Grant(dev.SampleFor, "quernd-dev").Access, nil
	}})
	if err != nil {
		return err
	}

	if !d.folder.State.Sampled {
		d.sayf("Loading the sample …")
	}

	return d.folder.LoadSample(ctx, client)
}

func (d *development) ready(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url()+"/readyz", nil)
	if err != nil {
		return false
	}

	response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * time.Second}).Do(request)
	if err != nil {
		return false
	}

	_ = response.Body.Close()

	return response.StatusCode == http.StatusOK
}

// greeting returns what the user can do now, as commands to copy.
func (d *development) greeting(signedIn dev.SignedIn) string {
	quern, server := clientProgram(), ""
	if !signedIn.Current {
		server = " --server " + d.url()
	}

	var text strings.Builder

	line := func(format string, args ...any) { _, _ = fmt.Fprintf(&text, format+"\n", args...) }
	ask := func(question string) { line("  %s%s ask -n %s %q", quern, server, dev.Namespace, question) }

	if d.console {
		line("\nOpen %s in a browser and sign in with any name, for example %s. There is no password.", d.url(), strings.Join(dev.Users(), ", "))
		line("The API is documented at %s/api/v1/docs", d.url())
	} else {
		line("\nQuern runs at %s, without the console. The API is documented at %[1]s/api/v1/docs", d.url())
	}

	line("\nOn the command line, sign in with any name too:\n\n  %s login %s\n", quern, d.url())

	switch {
	case signedIn.Username != "":
		line("The command line of this machine is signed in as %s (%s).", signedIn.Username, signedIn.File)
	case signedIn.Problem != "":
		line("The command line of this machine is not signed in: %s.", signedIn.Problem)
	}

	line("\nIn another terminal, upload a file and ask about it:\n")
	line("  %s%s upload %s %s/%s", quern, server, shortest(d.folder.SampleFile(dev.Upload)), dev.Namespace, dev.Upload)
	ask(dev.Ask)

	if !d.options.NoSample {
		line("\nThe namespace %s of %s has customers, orders and products. Ask, for example:\n", dev.Namespace, dev.SampleFor)

		for _, question := range dev.Questions() {
			ask(question)
		}
	}

	line("\nData and logs are in %s. For development only: every user of this machine can sign in with any name.", d.folder.Path)
	_, _ = fmt.Fprint(&text, "Press Ctrl-C to stop; the data is kept.")

	return text.String()
}

// clientProgram returns the command that runs quern from the current folder.
func clientProgram() string {
	own, err := os.Executable()
	if err != nil {
		return "quern"
	}

	beside := filepath.Join(filepath.Dir(own), "quern")
	if _, err := os.Stat(beside); err != nil {
		return "quern"
	}

	return shortest(beside)
}

// shortest returns path relative to the current folder if it is below that folder, else path.
func shortest(path string) string {
	here, _ := os.Getwd()
	if relative, err := filepath.Rel(cmp.Or(here, "/"), path); err == nil && filepath.IsLocal(relative) {
		return relative
	}

	return path
}
