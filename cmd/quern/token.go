package main

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) tokenCommand() *cobra.Command {
	return group("token", "List, create and revoke API tokens", p.tokenList(), p.tokenCreate(),
		p.act("revoke ID", "Revoke an API token", cobra.ExactArgs(1), func(ctx context.Context, client *api.Client, args []string) error {
			id, err := findID(args[0], "`quern token list` shows the ids", allTokens(ctx, client), func(t api.Token) listed { return listed{t.ID, t.Name} })
			if err != nil {
				return err
			}

			if _, err := api.Read[any](client.DeleteToken(ctx, id)); err != nil {
				return err
			}

			return p.done("Revoked the token.")
		}))
}

func (p *program) tokenList() *cobra.Command {
	var limit int

	command := p.act("list", "List your API tokens", cobra.NoArgs, func(ctx context.Context, client *api.Client, _ []string) error {
		return list(p, allTokens(ctx, client), limit, "No API tokens. `quern token create NAME` creates one.",
			column[api.Token]{"id", func(t api.Token) any { return t.ID }},
			column[api.Token]{"name", func(t api.Token) any { return t.Name }},
			column[api.Token]{"role", func(t api.Token) any { return string(t.Role) }},
			column[api.Token]{"expires", func(t api.Token) any { return t.ExpiresAt }},
			column[api.Token]{"last used", func(t api.Token) any { return t.LastUsedAt }},
			column[api.Token]{"only", func(t api.Token) any { return targets(t.AccessRestrictedTo) }},
		)
	})
	limitFlag(command, &limit)

	return command
}

func allTokens(ctx context.Context, client *api.Client) iter.Seq2[api.Token, error] {
	return api.Pages(func(cursor *string) ([]api.Token, *string, error) {
		page, err := api.Read[api.TokenList](client.ListTokens(ctx, &api.ListTokensParams{Cursor: cursor, Limit: new(int32(100))}))

		return page.Data, page.NextCursor, err
	})
}

func targets(all []api.TokenTarget) string {
	var names []string

	for _, target := range all {
		text := target.Username + "/" + target.Namespace
		if target.Dataset != nil {
			text += "/" + *target.Dataset
		}

		names = append(names, text)
	}

	return strings.Join(names, " ")
}

func (p *program) tokenCreate() *cobra.Command {
	var (
		role, expires string
		only          []string
	)

	command := p.act("create NAME", "Create an API token and print it once", cobra.ExactArgs(1), func(ctx context.Context, client *api.Client, args []string) error {
		wanted := api.NewToken{Name: args[0], Role: given[api.NewTokenRole](role)}

		if expires != "" {
			at, err := parseExpiry(expires, time.Now())
			if err != nil {
				return err
			}

			wanted.ExpiresAt = &at
		}

		var reach []api.TokenTarget

		for _, text := range only {
			at, err := sharedName(text)
			if err != nil {
				return err
			}

			reach = append(reach, api.TokenTarget{Username: at.owner, Namespace: at.namespace, Dataset: given[string](at.dataset)})
		}

		if reach != nil {
			wanted.AccessRestrictedTo = &reach
		}

		made, err := api.Read[api.CreatedToken](client.CreateToken(ctx, nil, wanted))
		if err != nil {
			return err
		}

		if p.format != "table" {
			return one(p, made, nil, column[api.CreatedToken]{"id", func(t api.CreatedToken) any { return t.ID }},
				column[api.CreatedToken]{"token", func(t api.CreatedToken) any { return t.Token }})
		}

		p.out.printf("%s\n", made.Token)
		p.err.printf("The token has the role %s, expires at %s, and is not shown again. Programs read it from QUERN_TOKEN.\n", made.Role, moment(made.ExpiresAt))

		return nil
	})
	command.Flags().StringVar(&role, "role", "", "highest role that the token gives: viewer, editor or owner (default editor)")
	command.Flags().StringVar(&expires, "expires", "", "expiry, such as 30d, 12h or 2027-01-31 (default 90d)")
	command.Flags().StringSliceVar(&only, "only", nil, "limit the token to this NAMESPACE or NAMESPACE/DATASET; can be repeated")

	return command
}

func parseExpiry(text string, now time.Time) (time.Time, error) {
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		if count, err := strconv.Atoi(days); err == nil && count > 0 {
			return now.AddDate(0, 0, count), nil
		}
	}

	if long, err := time.ParseDuration(text); err == nil && long > 0 {
		return now.Add(long), nil
	}

	if at, err := parseMoment(text); err == nil {
		return at, nil
	}

	return now, usageError{fmt.Errorf("%q is not an expiry: write 30d, 12h or 2027-01-31", text), "quern token create"}
}
