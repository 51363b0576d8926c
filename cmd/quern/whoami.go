package main

import (
	"strings"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) whoamiCommand() *cobra.Command {
	return &cobra.Command{
		Use: "whoami", Short: "Show who you are and which server you use", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := p.connect()
			if err != nil {
				return err
			}

			me, err := api.Read[api.Me](client.GetMe(cmd.Context()))
			if err != nil {
				return err
			}

			return one(p, me, func() {
				p.facts(
					fact{"username", me.Username}, fact{"name", me.Name}, fact{"email", me.Email},
					fact{"groups", strings.Join(me.Groups, ", ")}, fact{"server", p.server},
				)
			},
				column[api.Me]{"username", func(me api.Me) any { return me.Username }},
				column[api.Me]{"name", func(me api.Me) any { return me.Name }},
				column[api.Me]{"email", func(me api.Me) any { return me.Email }},
				column[api.Me]{"groups", func(me api.Me) any { return strings.Join(me.Groups, " ") }},
			)
		},
	}
}
