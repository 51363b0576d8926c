package main

import (
	"context"
	"iter"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) webhookCommand() *cobra.Command {
	return group("webhook", "Have events sent to an address", p.webhookCreate(), p.webhookList(), p.webhookDeliveries(),
		p.onWebhook("test", "Send a test event to a webhook", func(ctx context.Context, client *api.Client, id uuid.UUID) error {
			sent, err := api.Read[api.WebhookTest](client.TestWebhook(ctx, id))
			if err != nil {
				return err
			}

			return p.done("Sent the event %s. `quern webhook deliveries` shows what became of it.", sent.EventID)
		}),
		p.onWebhook("rotate", "Give a webhook a new secret and print it once", func(ctx context.Context, client *api.Client, id uuid.UUID) error {
			changed, err := api.Read[api.Webhook](client.RotateWebhookSecret(ctx, id))
			if err != nil {
				return err
			}

			return p.printSecret(changed)
		}),
		p.webhookActive("pause", "Stop sending to a webhook", false, "Paused the webhook."),
		p.webhookActive("resume", "Send to a webhook again that was paused or disabled", true, "The webhook is active."),
		p.onWebhook("delete", "Delete a webhook", func(ctx context.Context, client *api.Client, id uuid.UUID) error {
			if _, err := api.Read[any](client.DeleteWebhook(ctx, id)); err != nil {
				return err
			}

			return p.done("Deleted the webhook.")
		}))
}

// onWebhook returns a command on one webhook.
func (p *program) onWebhook(verb, short string, do func(ctx context.Context, client *api.Client, id uuid.UUID) error) *cobra.Command {
	return p.act(verb+" ID", short, cobra.ExactArgs(1), func(ctx context.Context, client *api.Client, args []string) error {
		id, err := findID(args[0], "`quern webhook list` shows the ids", allWebhooks(ctx, client), func(k api.Webhook) listed { return listed{k.ID, k.URL} })
		if err != nil {
			return err
		}

		return do(ctx, client, id)
	})
}

func (p *program) webhookActive(verb, short string, active bool, said string) *cobra.Command {
	return p.onWebhook(verb, short, func(ctx context.Context, client *api.Client, id uuid.UUID) error {
		if _, err := api.Read[api.Webhook](client.UpdateWebhook(ctx, id, api.WebhookChange{Active: &active})); err != nil {
			return err
		}

		return p.done("%s", said)
	})
}

func (p *program) webhookCreate() *cobra.Command {
	var (
		types []string
		about string
	)

	command := p.act("create URL", "Have events sent to an address, and print the secret once", cobra.ExactArgs(1), func(ctx context.Context, client *api.Client, args []string) error {
		wanted := api.NewWebhook{URL: args[0]}

		if about != "" {
			at, err := sharedName(about)
			if err != nil {
				return err
			}

			wanted.Username, wanted.Namespace, wanted.DatasetName = &at.owner, &at.namespace, given[string](at.dataset)
		}

		if types != nil {
			list := make([]api.NoticeType, len(types))
			for i, one := range types {
				list[i] = api.NoticeType(one)
			}

			wanted.Types = &list
		}

		made, err := api.Read[api.Webhook](client.CreateWebhook(ctx, nil, wanted))
		if err != nil {
			return err
		}

		return p.printSecret(made)
	})
	command.Flags().StringSliceVar(&types, "type", nil, "only events of this type, as of `quern watch`; can be repeated")
	command.Flags().StringVar(&about, "dataset", "", "only events of this NAMESPACE/DATASET, or of all datasets of this NAMESPACE")

	return command
}

// printSecret prints the secret of a webhook, which is shown once.
func (p *program) printSecret(made api.Webhook) error {
	secret := ""
	if made.Secret != nil {
		secret = *made.Secret
	}

	if p.format != "table" {
		return one(p, made, nil, column[api.Webhook]{"id", func(k api.Webhook) any { return k.ID }}, column[api.Webhook]{"secret", func(api.Webhook) any { return secret }})
	}

	p.out.printf("%s\n", secret)
	p.err.printf("The secret of the webhook %s is not shown again. Receivers check signatures with it.\n", made.ID)

	return nil
}

func (p *program) webhookList() *cobra.Command {
	var limit int

	command := p.act("list", "List your webhooks", cobra.NoArgs, func(ctx context.Context, client *api.Client, _ []string) error {
		return list(p, allWebhooks(ctx, client), limit, "No webhooks. `quern webhook create URL` creates one.",
			column[api.Webhook]{"id", func(k api.Webhook) any { return k.ID }},
			column[api.Webhook]{"status", func(k api.Webhook) any { return string(k.Status) }},
			column[api.Webhook]{"url", func(k api.Webhook) any { return k.URL }},
			column[api.Webhook]{"only", func(k api.Webhook) any { return selected(k) }},
			column[api.Webhook]{"failing since", func(k api.Webhook) any { return k.FailingSinceAt }},
			column[api.Webhook]{"reason", func(k api.Webhook) any { return k.Reason }},
		)
	})
	limitFlag(command, &limit)

	return command
}

// selected returns what a webhook is limited to.
func selected(k api.Webhook) string {
	var parts []string

	if k.Username != nil && k.Namespace != nil {
		about := *k.Username + "/" + *k.Namespace
		if k.DatasetName != nil {
			about += "/" + *k.DatasetName
		}

		parts = append(parts, about)
	}

	for _, one := range k.Types {
		parts = append(parts, string(one))
	}

	return strings.Join(parts, " ")
}

func allWebhooks(ctx context.Context, client *api.Client) iter.Seq2[api.Webhook, error] {
	return api.Pages(func(cursor *string) ([]api.Webhook, *string, error) {
		page, err := api.Read[api.WebhookList](client.ListWebhooks(ctx, &api.ListWebhooksParams{Cursor: cursor, Limit: new(int32(100))}))

		return page.Data, page.NextCursor, err
	})
}

func (p *program) webhookDeliveries() *cobra.Command {
	var limit int

	command := p.onWebhook("deliveries", "List what was sent to a webhook, newest first", func(ctx context.Context, client *api.Client, id uuid.UUID) error {
		pages := api.Pages(func(cursor *string) ([]api.Delivery, *string, error) {
			page, err := api.Read[api.DeliveryList](client.ListDeliveries(ctx, id, &api.ListDeliveriesParams{Cursor: cursor, Limit: new(int32(100))}))

			return page.Data, page.NextCursor, err
		})

		return list(p, pages, limit, "Nothing was sent in the last 7 days.",
			column[api.Delivery]{"event", func(d api.Delivery) any { return d.EventID }},
			column[api.Delivery]{"type", func(d api.Delivery) any { return string(d.Type) }},
			column[api.Delivery]{"status", func(d api.Delivery) any { return string(d.Status) }},
			column[api.Delivery]{"attempts", func(d api.Delivery) any { return d.Attempts }},
			column[api.Delivery]{"answer", func(d api.Delivery) any { return d.ResponseStatus }},
			column[api.Delivery]{"problem", func(d api.Delivery) any { return d.Problem }},
			column[api.Delivery]{"ms", func(d api.Delivery) any { return d.LatencyMs }},
			column[api.Delivery]{"happened", func(d api.Delivery) any { return d.CreatedAt }},
		)
	})
	limitFlag(command, &limit)

	return command
}
