package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) connectionCommand() *cobra.Command {
	return group("connection", "Connect to other systems from which data can be fetched", p.connectionCreate(), p.connectionList(),
		p.onConnection("test", "Try a connection", func(ctx context.Context, client *api.Client, id uuid.UUID) error {
			tested, err := api.Read[api.Connection](client.TestConnection(ctx, id))
			if err != nil {
				return err
			}

			if tested.Problem != nil {
				return exitError{exitUnavailable, "The connection does not work: " + tested.Problem.Message, ""}
			}

			return p.done("It works.")
		}),
		p.connectionFiles(), p.connectionRekey(), p.connectionShare(), p.connectionUnshare(), p.connectionShares(),
		p.connectionDelete())
}

// onConnection returns a command on one connection, which is named by its name or its id.
func (p *program) onConnection(verb, short string, do func(ctx context.Context, client *api.Client, id uuid.UUID) error) *cobra.Command {
	return p.act(verb+" NAME", short, cobra.ExactArgs(1), func(ctx context.Context, client *api.Client, args []string) error {
		id, err := connectionNamed(ctx, client, args[0])
		if err != nil {
			return err
		}

		return do(ctx, client, id)
	})
}

// fullName returns the name of a connection, which for one of somebody else begins with the owner.
func fullName(c api.Connection) string {
	if c.Owner != nil {
		return *c.Owner + "/" + c.Name
	}

	return c.Name
}

// connectionNamed returns the id of the connection with a name or an id. The name of a connection of the caller is its name; that of another one is OWNER/NAME, or NAME if only one has it.
func connectionNamed(ctx context.Context, client *api.Client, text string) (uuid.UUID, error) {
	var shared []api.Connection

	for one, err := range allConnections(ctx, client) {
		if err != nil {
			return uuid.Nil, err
		}

		if strings.EqualFold(fullName(one), text) {
			return one.ID, nil
		}

		if strings.EqualFold(one.Name, text) {
			shared = append(shared, one)
		}
	}

	switch len(shared) {
	case 0:
		return findNamed("connection", text, "`quern connection list` shows the names and ids", allConnections(ctx, client), func(c api.Connection) listed { return listed{c.ID, c.Name} })
	case 1:
		return shared[0].ID, nil
	default:
		return uuid.Nil, usageError{fmt.Errorf("several people share a connection %q with you: write %s or %s", text, fullName(shared[0]), fullName(shared[1])), "quern connection list"}
	}
}

// secretFlag adds the flag for a file with a secret. A secret is never an argument, which other users of the machine can see.
func secretFlag(command *cobra.Command, file *string) {
	command.Flags().StringVar(file, "secret-file", "-", "file with the secret access key; - reads it from the standard input")
}

func readSecret(command *cobra.Command, file string) (string, error) {
	if file == "-" {
		text, err := io.ReadAll(io.LimitReader(command.InOrStdin(), 1<<16))

		return strings.TrimSpace(string(text)), err
	}

	text, err := os.ReadFile(file)

	return strings.TrimSpace(string(text)), err
}

func (p *program) connectionCreate() *cobra.Command {
	var (
		settings  api.NewS3Settings
		database  postgresFlags
		address   addressFlags
		catalog   catalogFlags
		prefix    string
		pathStyle bool
		file      string
		command   *cobra.Command
	)

	command = p.act("create NAME", "Connect to a bucket in an S3 store, a PostgreSQL database, HTTPS addresses or an Iceberg catalog, and try it", cobra.ExactArgs(1), func(ctx context.Context, client *api.Client, args []string) error {
		want := api.NewConnection{Name: args[0], Kind: api.S3, S3: &settings}

		switch {
		case moreThanOne(settings.Endpoint, database.settings.Host, address.base) || moreThanOne(catalog.uri, database.settings.Host, address.base):
			return usageError{errors.New("give one of --endpoint for a bucket, --postgres-host for a database, --url for addresses, and --catalog with --endpoint for a catalog"), "quern connection create"}
		case address.base != "":
			found, err := address.read(command, database.settings.User, database.file)
			if err != nil {
				return err
			}

			want = api.NewConnection{Name: args[0], Kind: api.HTTPS, HTTPS: found}
		case database.settings.Host != "":
			if err := database.read(command); err != nil {
				return err
			}

			want = api.NewConnection{Name: args[0], Kind: api.Postgresql, Postgresql: &database.settings}
		default:
			secret, err := readSecret(command, file)
			if err != nil {
				return err
			}

			settings.SecretAccessKey, settings.Prefix, settings.PathStyle = secret, given[string](prefix), &pathStyle
		}

		if catalog.uri != "" {
			found, err := catalog.read(command, address)
			if err != nil {
				return err
			}

			found.Store = settings
			want = api.NewConnection{Name: args[0], Kind: api.Iceberg, Iceberg: found}
		}

		made, err := api.Read[api.Connection](client.CreateConnection(ctx, nil, want))
		if err != nil {
			return err
		}

		return p.done("The connection %s works.", made.Name)
	})
	flags := command.Flags()
	flags.StringVar(&settings.Endpoint, "endpoint", "", "address of the store, such as https://s3.eu-central-1.amazonaws.com")
	flags.StringVar(&settings.Region, "region", "us-east-1", "region of the bucket")
	flags.StringVar(&settings.Bucket, "bucket", "", "name of the bucket")
	flags.StringVar(&prefix, "prefix", "", "read only keys under this prefix")
	flags.BoolVar(&pathStyle, "path-style", false, "put the bucket into the path, not into the host name")
	flags.StringVar(&settings.AccessKeyID, "access-key-id", "", "id of the access key")
	secretFlag(command, &file)
	database.add(command)
	address.add(command)
	catalog.add(command)

	return command
}

func (p *program) connectionRekey() *cobra.Command {
	var (
		keyID, file, password, token string
		command                      *cobra.Command
	)

	command = p.onConnection("rekey", "Give a connection another access key, password or token, and try it", func(ctx context.Context, client *api.Client, id uuid.UUID) error {
		if password != "" || token != "" {
			secret, err := readSecret(command, password+token)
			if err != nil {
				return err
			}

			change, what := api.ConnectionChange{Password: &secret}, "password"
			if token != "" {
				change, what = api.ConnectionChange{Token: &secret}, "token"
			}

			changed, err := api.Read[api.Connection](client.UpdateConnection(ctx, id, change))
			if err != nil {
				return err
			}

			return p.done("The connection %s works with the new %s.", changed.Name, what)
		}

		secret, err := readSecret(command, file)
		if err != nil {
			return err
		}

		changed, err := api.Read[api.Connection](client.UpdateConnection(ctx, id, api.ConnectionChange{AccessKeyID: &keyID, SecretAccessKey: &secret}))
		if err != nil {
			return err
		}

		return p.done("The connection %s works with the new access key.", changed.Name)
	})
	command.Flags().StringVar(&keyID, "access-key-id", "", "id of the access key")
	command.Flags().StringVar(&password, "password-file", "", "file with the password of a database or of addresses, or with the secret of a client of a catalog; - reads it from the standard input")
	command.Flags().StringVar(&token, "token-file", "", "file with the token of addresses or of a catalog; - reads it from the standard input")
	command.MarkFlagsMutuallyExclusive("access-key-id", "password-file", "token-file")
	secretFlag(command, &file)

	return command
}

func (p *program) connectionList() *cobra.Command {
	var limit int

	command := p.act("list", "List your connections and those that are shared with you", cobra.NoArgs, func(ctx context.Context, client *api.Client, _ []string) error {
		return list(p, allConnections(ctx, client), limit, "No connections. `quern connection create NAME` creates one.",
			column[api.Connection]{"id", func(c api.Connection) any { return c.ID }},
			column[api.Connection]{"name", func(c api.Connection) any { return fullName(c) }},
			column[api.Connection]{"kind", func(c api.Connection) any { return string(c.Kind) }},
			column[api.Connection]{"leads to", func(c api.Connection) any { return leadsTo(c) }},
			column[api.Connection]{"tested", func(c api.Connection) any { return c.TestedAt }},
			column[api.Connection]{"problem", func(c api.Connection) any {
				if c.Problem == nil {
					return ""
				}

				return c.Problem.Code
			}},
		)
	})
	limitFlag(command, &limit)

	return command
}

func allConnections(ctx context.Context, client *api.Client) iter.Seq2[api.Connection, error] {
	return api.Pages(func(cursor *string) ([]api.Connection, *string, error) {
		page, err := api.Read[api.ConnectionList](client.ListConnections(ctx, &api.ListConnectionsParams{Cursor: cursor, Limit: new(int32(100))}))

		return page.Data, page.NextCursor, err
	})
}
