package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/cron"
)

// configuration is a file with connections and sources, without secrets.
type configuration struct {
	Connections []connectionEntry `json:"connections,omitempty"`
	Sources     []sourceEntry     `json:"sources,omitempty"`
}

type connectionEntry struct {
	Name       string                `json:"name"`
	S3         *api.S3Settings       `json:"s3,omitempty"`
	Postgresql *api.PostgresSettings `json:"postgresql,omitempty"`
	HTTPS      *api.HTTPSSettings    `json:"https,omitempty"`
	Iceberg    *api.IcebergSettings  `json:"iceberg,omitempty"`
}

type sourceEntry struct {
	Name       string                `json:"name"`
	Connection string                `json:"connection"`
	Dataset    string                `json:"dataset"` // OWNER/NAMESPACE/DATASET, or NAMESPACE/DATASET for one of the caller
	Postgresql *api.NewPostgresRows  `json:"postgresql,omitempty"`
	Iceberg    *api.IcebergTable     `json:"iceberg,omitempty"`
	Prefix     string                `json:"prefix,omitempty"`
	Pattern    string                `json:"pattern,omitempty"`
	Paths      []string              `json:"paths,omitempty"`
	Options    *api.IngestionOptions `json:"options,omitempty"`
	Accept     []string              `json:"accept,omitempty"`
	Changed    string                `json:"changed,omitempty"`
	Deleted    string                `json:"deleted,omitempty"`
	Schedule   *api.Schedule         `json:"schedule,omitempty"`
	Paused     bool                  `json:"paused,omitempty"`
}

func connectionEntryOf(c api.Connection) connectionEntry {
	return connectionEntry{Name: c.Name, S3: c.S3, Postgresql: c.Postgresql, HTTPS: c.HTTPS, Iceberg: c.Iceberg}
}

// normal fills in what the service does for settings that are left out.
func (e connectionEntry) normal() connectionEntry {
	if e.S3 != nil {
		s3 := *e.S3
		s3.Endpoint = strings.TrimRight(s3.Endpoint, "/")
		e.S3 = &s3
	}

	if e.Postgresql != nil {
		database := *e.Postgresql
		if database.Port == 0 {
			database.Port = postgresPort
		}

		if database.SslMode == "" {
			database.SslMode = api.VerifyFull
		}

		e.Postgresql = &database
	}

	if e.HTTPS != nil {
		address := *e.HTTPS
		address.BaseURL = strings.TrimRight(address.BaseURL, "/") + "/"

		switch {
		case address.Auth != "":
		case address.User != nil:
			address.Auth = api.Basic
		default:
			address.Auth = api.None
		}

		e.HTTPS = &address
	}

	if e.Iceberg != nil {
		e.Iceberg = normalCatalog(*e.Iceberg)
	}

	return e
}

// valid returns an error for settings that no connection has.
func (e connectionEntry) valid() error {
	if e.Iceberg != nil {
		return validCatalog(*normalCatalog(*e.Iceberg))
	}

	if e.HTTPS == nil {
		return nil
	}

	if auth := e.normal().HTTPS.Auth; !auth.Valid() || (auth == api.Basic) != (e.HTTPS.User != nil) {
		return errors.New("auth must be none, bearer or basic, and only basic has a user")
	}

	return nil
}

// hasSecret reports whether the connection needs a secret.
func (e connectionEntry) hasSecret() bool { return e.HTTPS == nil || e.normal().HTTPS.Auth != api.None }

// kinds returns how many kinds have settings.
func (e connectionEntry) kinds() (count int) {
	for _, has := range []bool{e.S3 != nil, e.Postgresql != nil, e.HTTPS != nil, e.Iceberg != nil} {
		if has {
			count++
		}
	}

	return count
}

// sourceEntryOf returns the configuration of a source. connections are names by id.
func sourceEntryOf(s api.Source, connections map[string]string) sourceEntry {
	e := sourceEntry{
		Name: s.Name, Connection: connections[s.ConnectionID.String()], Dataset: s.Username + "/" + s.Namespace + "/" + s.DatasetName, Prefix: s.Prefix, Pattern: s.Pattern,
		Options: s.Options, Schedule: s.Schedule, Paused: s.Status == api.SourceStatusPaused,
	}

	if s.Accept != nil {
		e.Accept = *s.Accept
	}

	if s.Paths != nil {
		e.Prefix, e.Pattern, e.Paths = "", "", *s.Paths
	}

	if s.Iceberg != nil {
		e.Prefix, e.Pattern, e.Iceberg = "", "", s.Iceberg

		return e
	}

	if s.Postgresql == nil {
		e.Changed, e.Deleted = string(*s.Changed), string(*s.Deleted)

		return e
	}

	rows := s.Postgresql
	e.Prefix, e.Pattern = "", ""
	e.Postgresql = &api.NewPostgresRows{
		Schema: rows.Schema, Table: rows.Table, Query: rows.Query, Mode: rows.Mode, CursorColumn: rows.CursorColumn, Overlap: rows.Overlap, Key: rows.Key, AsText: rows.AsText,
	}

	return e
}

// normal fills in what the service does for fields that are left out. self is the name of the caller.
func (e sourceEntry) normal(self string) (sourceEntry, error) {
	at, err := datasetName(e.Dataset)
	if err != nil {
		return e, err
	}

	if at.owner == "self" {
		at.owner = self
	}

	e.Dataset = at.String()

	if e.Options != nil && *e.Options == (api.IngestionOptions{}) {
		e.Options = nil
	}

	if e.Iceberg != nil {
		return e, nil
	}

	if e.Postgresql != nil {
		rows := *e.Postgresql
		if rows.Schema == nil && rows.Table != nil {
			rows.Schema = new("public")
		}

		e.Postgresql = &rows

		return e, nil
	}

	for place, otherwise := range map[*string]string{&e.Pattern: "*", &e.Changed: "keep", &e.Deleted: "keep"} {
		if *place == "" && (place != &e.Pattern || len(e.Paths) == 0) {
			*place = otherwise
		}
	}

	return e, nil
}

// valid returns an error for a value that the service would refuse, so that a dry run finds it too.
func (e sourceEntry) valid() error {
	if e.Changed != "" && !api.SourceChangedFiles(e.Changed).Valid() {
		return errors.New("changed must be keep or replace")
	}

	if e.Deleted != "" && !api.SourceDeletedFiles(e.Deleted).Valid() {
		return errors.New("deleted must be keep or remove")
	}

	if _, err := path.Match(e.Pattern, ""); err != nil {
		return errors.New("pattern is not a pattern: a [ must have its ], and \\ must be followed by a character")
	}

	if e.Schedule == nil || *e.Schedule == (api.Schedule{}) {
		return nil
	}

	if _, problem := cron.Parse(e.Schedule.Cron); problem != "" {
		return errors.New("schedule.cron " + problem)
	}

	if _, problem := cron.Zone(e.Schedule.TimeZone); problem != "" {
		return errors.New("schedule.timeZone " + problem)
	}

	if e.Schedule.JitterMinutes < 0 || e.Schedule.JitterMinutes > maxJitterMinutes {
		return fmt.Errorf("schedule.jitterMinutes must be from 0 to %d", maxJitterMinutes)
	}

	return nil
}

// maxJitterMinutes is the bound of the contract.
const maxJitterMinutes = 720

// difference is a field that has another value in the file.
type difference struct{ field, is, want string }

// differences compares two values of the same struct type field by field.
func differences[T any](is, want T) (found []difference) {
	a, b := reflect.ValueOf(is), reflect.ValueOf(want)

	for i := range a.NumField() {
		left, right := inLine(a.Field(i)), inLine(b.Field(i))
		if left != right {
			name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("json"), ",")
			found = append(found, difference{name, left, right})
		}
	}

	return found
}

// inLine returns a value in one line: JSON, or nothing.
func inLine(value reflect.Value) string {
	switch {
	case value.Kind() != reflect.Bool && value.IsZero():
		return "none"
	case value.Kind() == reflect.String:
		return value.String()
	}

	text, err := json.Marshal(value.Interface())
	if err != nil {
		return "?" // does not happen: all of it came from JSON
	}

	return string(text)
}

// yaml returns the file. It is JSON in the order of the fields, written in the block style of YAML.
func (c configuration) yaml() ([]byte, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}

	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return nil, err
	}

	blockStyle(&node)

	var out bytes.Buffer

	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)

	if err := encoder.Encode(&node); err != nil {
		return nil, err
	}

	return out.Bytes(), encoder.Close()
}

// blockStyle removes the style of JSON. A text that looks like another type stays quoted.
func blockStyle(node *yaml.Node) {
	node.Style = 0
	for _, child := range node.Content {
		blockStyle(child)
	}
}

// readConfiguration reads a file. Fields that it does not know are errors, because they would be ignored.
func readConfiguration(text []byte) (c configuration, err error) {
	var value any
	if err := yaml.Unmarshal(text, &value); err != nil {
		return c, fmt.Errorf("it is not YAML: %w", err)
	}

	encoded, err := json.Marshal(value)
	if err != nil {
		return c, fmt.Errorf("a name of a field is not a text: %w", err)
	}

	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.DisallowUnknownFields()

	if err := decoder.Decode(&c); err != nil {
		return c, fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "json: "))
	}

	return c, nil
}
