package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

// postgresFlags are the flags for a connection to a PostgreSQL database.
type postgresFlags struct {
	settings api.NewPostgresSettings
	port     int32
	mode     string
	file     string
}

func (f *postgresFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&f.settings.Host, "postgres-host", "", "host of a PostgreSQL server, instead of --endpoint")
	flags.Int32Var(&f.port, "postgres-port", 5432, "port of the server")
	flags.StringVar(&f.settings.Database, "database", "", "name of the database")
	flags.StringVar(&f.settings.User, "user", "", "user of the database, one that only reads is enough; or of --url")
	flags.StringVar(&f.file, "password-file", "-", "file with the password of the user; - reads it from the standard input")
	flags.StringVar(&f.mode, "ssl-mode", string(api.VerifyFull), "verify-full, or disable in a network that the operator allows")
}

func (f *postgresFlags) read(command *cobra.Command) error {
	password, err := readSecret(command, f.file)
	f.settings.Password, f.settings.Port, f.settings.SslMode = password, &f.port, new(api.PostgresSSLMode(f.mode))

	return err
}

// leadsTo returns where a connection leads, for people.
func leadsTo(c api.Connection) string {
	switch {
	case c.S3 != nil:
		return strings.TrimSuffix(strings.TrimRight(c.S3.Endpoint, "/")+"/"+c.S3.Bucket+"/"+c.S3.Prefix, "/")
	case c.Postgresql != nil:
		return fmt.Sprintf("%s@%s:%d/%s", c.Postgresql.User, c.Postgresql.Host, c.Postgresql.Port, c.Postgresql.Database)
	case c.HTTPS != nil:
		return c.HTTPS.BaseURL
	case c.Iceberg != nil:
		return c.Iceberg.URI
	default:
		return ""
	}
}
