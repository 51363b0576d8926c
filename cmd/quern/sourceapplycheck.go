package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"quern.dev/quern/api"
)

// noConnection is the error for a source whose connection neither exists nor is in the file.
func (a *application) noConnection(wanted sourceEntry) error {
	text := fmt.Sprintf("the source %s uses the connection %q, which is not in the file, and you have none with this name", a.out.clean(wanted.Name), a.out.clean(wanted.Connection))
	hint := "`quern connection list` shows those that you may use; that of somebody else is OWNER/NAME."

	if owner, name, isOther := strings.Cut(wanted.Connection, "/"); isOther {
		text = fmt.Sprintf("the source %s uses the connection %s, which does not exist or is not shared with you", a.out.clean(wanted.Name), a.out.clean(wanted.Connection))
		hint = fmt.Sprintf("%s can share it: `quern connection share %s %s`. Or name a connection of your own in the file.", a.out.clean(owner), a.out.clean(name), a.have.self)
	}

	return exitError{exitNotFound, text, hint}
}

// checkDataset returns an error for a source whose dataset belongs to somebody else and is not there. A dataset of the caller need not exist.
func (a *application) checkDataset(ctx context.Context, wanted sourceEntry) error {
	at, err := datasetName(wanted.Dataset)
	if err != nil || at.owner == "self" || strings.EqualFold(at.owner, a.have.self) || a.have.source(wanted.Name) != nil {
		return err
	}

	_, err = api.Read[api.Dataset](a.client.GetDataset(ctx, at.owner, at.namespace, at.dataset))
	if api.IsCode(err, api.NOTFOUND) {
		return exitError{exitNotFound, fmt.Sprintf("the source %s loads into the dataset %s, which does not exist or is not shared with you", a.out.clean(wanted.Name), a.out.clean(at.String())), a.shareHint(at)}
	}

	return err
}

// shareHint says how the caller gets the right to load into a dataset of somebody else.
func (a *application) shareHint(at name) string {
	return fmt.Sprintf("%s can share it: `quern share %s %s --role editor`. Or name a dataset of your own in the file, as NAMESPACE/DATASET.", a.out.clean(at.owner), a.out.clean(at.String()), a.have.self)
}

// hasNew reports whether --secret-file names a connection.
func (a *application) hasNew(name string) bool {
	_, isGiven := a.secrets[strings.ToLower(name)]

	return isGiven
}

// withKey returns the settings with the id of the access key of others.
func (e connectionEntry) withKey(others connectionEntry) connectionEntry {
	if e.S3 != nil && others.S3 != nil {
		e.S3.AccessKeyID = others.S3.AccessKeyID
	}

	if e.Iceberg != nil && others.Iceberg != nil {
		e.Iceberg.Store.AccessKeyID = others.Iceberg.Store.AccessKeyID
	}

	return e
}

// checkSecrets returns an error for a file with a secret that nothing in the file needs, or that cannot be read.
func (a *application) checkSecrets(file configuration) error {
	needed := map[string]bool{}

	for _, wanted := range file.Connections {
		key := strings.ToLower(wanted.Name)
		needed[key] = wanted.hasSecret()
		needed[key+"/catalog"] = wanted.Iceberg != nil && wanted.normal().Iceberg.Auth != api.IcebergAuthNone
	}

	for name, path := range a.secrets {
		if !needed[name] {
			return usageError{fmt.Errorf("--secret-file names %q, and the file has no connection with this name that needs a secret", a.out.clean(name)), applyCommand}
		}

		if _, err := os.Stat(path); err != nil {
			return err
		}
	}

	return nil
}

// rekey replaces the secrets of a connection that --secret-file names.
func (a *application) rekey(ctx context.Context, found api.Connection, wanted connectionEntry) error {
	change := api.ConnectionChange{}

	for name, place := range places(wanted, &change) {
		if !a.hasNew(name) {
			continue
		}

		secret, err := a.secretOf(name)
		if err != nil {
			return err
		}

		*place = &secret
	}

	switch {
	case change == (api.ConnectionChange{}):
		return a.tell("connection", wanted.Name, "", nil)
	case a.isDry:
		return a.tell("connection", wanted.Name, "given another secret", nil)
	case change.SecretAccessKey != nil && wanted.S3 != nil:
		change.AccessKeyID = &wanted.S3.AccessKeyID
	case change.SecretAccessKey != nil:
		change.AccessKeyID = &wanted.Iceberg.Store.AccessKeyID
	}

	if _, err := api.Read[api.Connection](a.client.UpdateConnection(ctx, found.ID, change)); err != nil {
		return err
	}

	return a.tell("connection", wanted.Name, "given another secret", nil)
}

// places returns where a change has the secrets of a connection, by the name in --secret-file.
func places(of connectionEntry, change *api.ConnectionChange) map[string]**string {
	switch {
	case of.Postgresql != nil:
		return map[string]**string{of.Name: &change.Password}
	case of.HTTPS != nil && of.HTTPS.Auth == api.Bearer:
		return map[string]**string{of.Name: &change.Token}
	case of.HTTPS != nil:
		return map[string]**string{of.Name: &change.Password}
	case of.S3 != nil:
		return map[string]**string{of.Name: &change.SecretAccessKey}
	case of.Iceberg.Auth == api.IcebergAuthBearer:
		return map[string]**string{of.Name: &change.SecretAccessKey, of.Name + "/catalog": &change.Token}
	default:
		return map[string]**string{of.Name: &change.SecretAccessKey, of.Name + "/catalog": &change.Password}
	}
}
