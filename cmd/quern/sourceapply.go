package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

const (
	postgresPort = 5432
	// secretPrefix begins the names of environment variables with secrets of connections.
	secretPrefix = "QUERN_CONNECTION_SECRET_"
	applyCommand = "quern source apply"
)

// application is a file that is applied.
type application struct {
	*program

	client  *api.Client
	have    present
	isDry   bool
	secrets map[string]string // files with secrets, by the name of the connection in lower case
	changes int
}

func (p *program) sourceApply() *cobra.Command {
	var (
		isDry bool
		files map[string]string
	)

	command := p.act("apply FILE", "Make and change connections and sources as a YAML file says", cobra.ExactArgs(1), func(ctx context.Context, client *api.Client, args []string) error {
		text, err := os.ReadFile(args[0])
		if err != nil {
			return err
		}

		file, err := readConfiguration(text)
		if err != nil {
			return usageError{fmt.Errorf("%s: %w", args[0], err), applyCommand}
		}

		a := &application{program: p, client: client, isDry: isDry, secrets: map[string]string{}}
		for name, path := range files {
			a.secrets[strings.ToLower(name)] = path
		}

		if a.have, err = p.present(ctx, client); err != nil {
			return err
		}

		return a.apply(ctx, file)
	})
	command.Long = `Make and change connections and sources as a YAML file says. ` + "`quern source export`" + ` writes such a file. What is missing is made, what differs is
changed, and nothing is deleted. The same file again changes nothing.

The secret of a connection that is made is read from the environment variable ` + secretPrefix + `NAME, where NAME is the name of the connection in
capitals with _ for everything else than letters and digits, or from the file that --secret-file names. For a catalog that is the secret key of
its store; the token or the secret of its client is that of NAME/catalog. --secret-file replaces the secret of a connection that exists.`
	command.Example = `  quern source apply --dry-run sources.yaml
  quern source apply --secret-file nightly=key sources.yaml`
	flags := command.Flags()
	flags.BoolVar(&isDry, "dry-run", false, "show what differs, and change nothing")
	flags.StringToStringVar(&files, "secret-file", nil, "file with the secret of a connection, as CONNECTION=FILE; can be repeated")

	return command
}

// apply checks everything that it can before it changes anything.
func (a *application) apply(ctx context.Context, file configuration) error {
	if err := a.check(ctx, file); err != nil {
		return err
	}

	for _, wanted := range file.Connections {
		if err := a.connection(ctx, wanted.normal()); err != nil {
			return err
		}
	}

	for _, wanted := range file.Sources {
		if err := a.source(ctx, wanted); err != nil {
			return err
		}
	}

	if a.changes == 0 {
		return a.done("Nothing differs.")
	}

	return nil
}

func impossible(what, name string, found []difference) error {
	var fields []string
	for _, d := range found {
		fields = append(fields, d.field)
	}

	return exitError{
		exitState, fmt.Sprintf("the %s %s cannot be changed to what the file says: %s", what, name, strings.Join(fields, ", ")),
		"Nothing was changed. Use another name in the file, or delete the " + what + " first.",
	}
}

// check returns an error if the file cannot be applied.
func (a *application) check(ctx context.Context, file configuration) error {
	known := map[string]bool{}
	for _, c := range a.have.connections {
		known[strings.ToLower(fullName(c))] = true
	}

	seen := map[string]bool{}

	for _, wanted := range file.Connections {
		key := strings.ToLower(wanted.Name)
		if wanted.Name == "" || seen[key] || wanted.kinds() != 1 {
			return usageError{fmt.Errorf("the connection %q must have a name of its own, and one of s3, postgresql, https and iceberg", a.out.clean(wanted.Name)), applyCommand}
		}

		if err := wanted.valid(); err != nil {
			return usageError{fmt.Errorf("the connection %q: %w", a.out.clean(wanted.Name), err), applyCommand}
		}

		seen[key], known[key] = true, true

		found := a.have.connection(wanted.Name)
		if found == nil {
			if a.isDry { // it makes no connection
				continue
			}

			if _, err := a.secret(wanted); err != nil {
				return err
			}

			if _, err := a.catalogSecret(wanted); err != nil {
				return err
			}

			continue
		}

		entry := connectionEntryOf(*found).normal()
		entry.Name = wanted.Name

		if a.hasNew(wanted.Name) { // the id of an access key changes with its secret
			entry = entry.withKey(wanted)
		}

		if differ := differences(entry, wanted.normal()); len(differ) > 0 {
			return impossible("connection", a.out.clean(wanted.Name), differ)
		}
	}

	if err := a.checkSecrets(file); err != nil {
		return err
	}

	return a.checkSources(ctx, file, known)
}

// checkSources returns an error if the sources of the file cannot be made or changed. known are the names of the connections that there are or will be.
func (a *application) checkSources(ctx context.Context, file configuration, known map[string]bool) error {
	seen := map[string]bool{}

	for _, wanted := range file.Sources {
		key := strings.ToLower(wanted.Name)
		if wanted.Name == "" || seen[key] {
			return usageError{fmt.Errorf("the source %q must have a name of its own", a.out.clean(wanted.Name)), applyCommand}
		}

		if !known[strings.ToLower(wanted.Connection)] {
			return a.noConnection(wanted)
		}

		seen[key] = true

		if err := wanted.valid(); err != nil {
			return usageError{fmt.Errorf("the source %q: %w", a.out.clean(wanted.Name), err), applyCommand}
		}

		if err := a.checkDataset(ctx, wanted); err != nil {
			return err
		}

		differ, err := a.differences(wanted)
		if err != nil {
			return err
		}

		fixed := slices.DeleteFunc(differ, func(d difference) bool {
			hasFiles := wanted.Postgresql == nil && wanted.Iceberg == nil

			return d.field == "connection" && hasFiles || !slices.Contains([]string{"connection", "dataset", "postgresql", "iceberg"}, d.field)
		})
		if len(fixed) > 0 {
			return impossible("source", a.out.clean(wanted.Name), fixed)
		}
	}

	return nil
}

// differences returns what differs of a source that exists.
func (a *application) differences(wanted sourceEntry) ([]difference, error) {
	wanted, err := wanted.normal(a.have.self)
	if err != nil {
		return nil, err
	}

	found := a.have.source(wanted.Name)
	if found == nil {
		return nil, nil
	}

	is, err := sourceEntryOf(*found, a.have.names()).normal(a.have.self)
	if err != nil {
		return nil, err
	}

	is.Name = wanted.Name
	if strings.EqualFold(is.Connection, wanted.Connection) {
		is.Connection = wanted.Connection
	}

	if strings.EqualFold(is.Dataset, wanted.Dataset) {
		is.Dataset = wanted.Dataset
	}

	if is.Postgresql != nil && wanted.Postgresql != nil && wanted.Postgresql.Key == nil {
		is.Postgresql.Key = nil // it was taken from the dataset
	}

	return differences(is, wanted), nil
}

// secret returns the secret of a connection that is to be made, and an empty text if it needs none.
func (a *application) secret(wanted connectionEntry) (string, error) {
	if !wanted.hasSecret() {
		return "", nil
	}

	return a.secretOf(wanted.Name)
}

// secretOf returns the secret with a name.
func (a *application) secretOf(name string) (string, error) {
	if path, isGiven := a.secrets[strings.ToLower(name)]; isGiven {
		text, err := os.ReadFile(path)

		return strings.TrimSpace(string(text)), err
	}

	variable := secretPrefix + strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return '_'
		}

		return unicode.ToUpper(r)
	}, name)

	if text := os.Getenv(variable); text != "" {
		return text, nil
	}

	return "", usageError{fmt.Errorf("the connection %s is to be made, and its secret is missing: give --secret-file %s=FILE, or set %s", a.out.clean(name), a.out.clean(name), variable), applyCommand}
}

// tell prints what was done, or in a dry run what would be.
func (a *application) tell(what, name, did string, differ []difference) error {
	if did != "" {
		a.changes++
	}

	switch {
	case did == "":
		did = "as in the file"
	case a.isDry:
		did = "would be " + did
	}

	if err := a.done("%s %s: %s", what, a.out.clean(name), did); err != nil {
		return err
	}

	for _, d := range differ {
		if err := a.done("  %s: %s -> %s", d.field, a.out.clean(d.is), a.out.clean(d.want)); err != nil {
			return err
		}
	}

	return nil
}

func (a *application) connection(ctx context.Context, wanted connectionEntry) error {
	if found := a.have.connection(wanted.Name); found != nil {
		return a.rekey(ctx, *found, wanted)
	}

	if a.isDry {
		return a.tell("connection", wanted.Name, "made", nil)
	}

	secret, err := a.secret(wanted)
	if err != nil {
		return err
	}

	body := api.NewConnection{Name: wanted.Name}

	switch {
	case wanted.Iceberg != nil:
		credentials, err := a.catalogSecret(wanted)
		if err != nil {
			return err
		}

		body.Kind, body.Iceberg = api.Iceberg, newCatalog(*wanted.normal().Iceberg, credentials, secret)
	case wanted.S3 != nil:
		body.Kind, body.S3 = api.S3, &api.NewS3Settings{
			Endpoint: wanted.S3.Endpoint, Region: wanted.S3.Region, Bucket: wanted.S3.Bucket, Prefix: given[string](wanted.S3.Prefix), PathStyle: &wanted.S3.PathStyle,
			AccessKeyID: wanted.S3.AccessKeyID, SecretAccessKey: secret,
		}
	case wanted.HTTPS != nil:
		body.Kind, body.HTTPS = api.HTTPS, &api.NewHTTPSSettings{BaseURL: wanted.HTTPS.BaseURL, User: wanted.HTTPS.User, CaCertificate: wanted.HTTPS.CaCertificate}

		switch wanted.HTTPS.Auth {
		case api.Bearer:
			body.HTTPS.Token = &secret
		case api.Basic:
			body.HTTPS.Password = &secret
		case api.None:
		}
	default:
		body.Kind, body.Postgresql = api.Postgresql, &api.NewPostgresSettings{
			Host: wanted.Postgresql.Host, Port: &wanted.Postgresql.Port, Database: wanted.Postgresql.Database, User: wanted.Postgresql.User, Password: secret,
			SslMode: &wanted.Postgresql.SslMode,
		}
	}

	made, err := api.Read[api.Connection](a.client.CreateConnection(ctx, nil, body))
	if err != nil {
		return err
	}

	a.have.connections = append(a.have.connections, made)

	return a.tell("connection", wanted.Name, "made", nil)
}

func (a *application) source(ctx context.Context, wanted sourceEntry) error {
	found := a.have.source(wanted.Name)
	if found == nil {
		return a.makeSource(ctx, wanted)
	}

	differ, err := a.differences(wanted)

	switch {
	case err != nil:
		return err
	case len(differ) == 0:
		return a.tell("source", wanted.Name, "", nil)
	case a.isDry:
		return a.tell("source", wanted.Name, "changed", differ)
	}

	if wanted, err = wanted.normal(a.have.self); err != nil {
		return err
	}

	change := wanted.change(differ)

	if slices.ContainsFunc(differ, func(d difference) bool { return d.field == "connection" }) {
		connection := a.have.connection(wanted.Connection)
		if connection == nil {
			return errors.New("the connection is gone")
		}

		change.ConnectionID = &connection.ID
	}

	if _, err := api.Read[api.Source](a.client.UpdateSource(ctx, found.ID, change)); err != nil {
		return err
	}

	return a.tell("source", wanted.Name, "changed", differ)
}

// change returns the change of the fields that differ.
func (e sourceEntry) change(differ []difference) (change api.SourceChange) {
	for _, d := range differ {
		switch d.field {
		case "prefix":
			change.Prefix = &e.Prefix
		case "pattern":
			change.Pattern = &e.Pattern
		case "paths":
			change.Paths = &e.Paths
		case "changed":
			change.Changed = new(api.SourceChangedFiles(e.Changed))
		case "deleted":
			change.Deleted = new(api.SourceDeletedFiles(e.Deleted))
		case "accept":
			change.Accept = doubtCodes(e.Accept)
			if change.Accept == nil {
				change.Accept = &[]api.DoubtCode{}
			}
		case "options":
			change.Options = e.Options
			if change.Options == nil {
				change.Options = &api.IngestionOptions{}
			}
		case "schedule":
			change.Schedule = e.schedule()
			if change.Schedule == nil {
				change.Schedule = &api.NewSchedule{}
			}
		case "paused":
			change.Active = new(!e.Paused)
		}
	}

	return change
}

func (e sourceEntry) schedule() *api.NewSchedule {
	if e.Schedule == nil {
		return nil
	}

	return &api.NewSchedule{Cron: &e.Schedule.Cron, TimeZone: &e.Schedule.TimeZone, JitterMinutes: &e.Schedule.JitterMinutes}
}

func (a *application) makeSource(ctx context.Context, wanted sourceEntry) error {
	if a.isDry {
		return a.tell("source", wanted.Name, "made", nil)
	}

	at, err := datasetName(wanted.Dataset)
	if err != nil {
		return err
	}

	connection := a.have.connection(wanted.Connection)
	if connection == nil {
		return errors.New("the connection is gone")
	}

	body := api.NewSource{
		Name: wanted.Name, ConnectionID: connection.ID, Username: &at.owner, Namespace: at.namespace, DatasetName: at.dataset, Prefix: given[string](wanted.Prefix),
		Pattern: given[string](wanted.Pattern), Options: wanted.Options, Accept: doubtCodes(wanted.Accept), Changed: given[api.SourceChangedFiles](wanted.Changed),
		Deleted: given[api.SourceDeletedFiles](wanted.Deleted), Postgresql: wanted.Postgresql, Iceberg: wanted.Iceberg, Schedule: wanted.schedule(),
	}

	if len(wanted.Paths) > 0 {
		body.Paths = &wanted.Paths
	}

	made, err := api.Read[api.Source](a.client.CreateSource(ctx, nil, body))
	if err != nil {
		if _, hint := explain(err); strings.Contains(hint, "`quern share`") {
			err = exitError{exitForbidden, fmt.Sprintf("the source %s loads into the dataset %s, which you may not change", a.out.clean(wanted.Name), a.out.clean(at.String())), a.shareHint(at)}
		}

		return err
	}

	if wanted.Paused {
		if err := a.pause(ctx, made.ID); err != nil {
			return err
		}
	}

	return a.tell("source", wanted.Name, "made", nil)
}

func (a *application) pause(ctx context.Context, id uuid.UUID) error {
	_, err := api.Read[api.Source](a.client.UpdateSource(ctx, id, api.SourceChange{Active: new(false)}))

	return err
}
