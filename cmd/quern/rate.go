package main

import (
	"context"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) rateCommand() *cobra.Command {
	var comment string

	command := p.act("rate RUN [up|down|none]", "Rate an answer, or withdraw the rating", cobra.RangeArgs(1, 2), func(ctx context.Context, client *api.Client, args []string) error {
		id, err := findID(args[0], "`quern runs` shows the ids", recentRuns(ctx, client), func(r api.RunItem) listed { return listed{r.RunID, r.Question} })
		if err != nil {
			return err
		}

		rating := ""
		if len(args) == 2 {
			rating = args[1]
		}

		switch rating {
		case "":
			found, err := api.Read[api.Feedback](client.GetFeedback(ctx, id))
			if api.IsCode(err, api.NOTFOUND) {
				return exitError{exitNotFound, "the answer is not rated", "Rate it with `quern rate " + args[0] + " up`."}
			}

			if err != nil {
				return err
			}

			return one(p, found, func() {
				p.facts(fact{"rating", thumb(found.ThumbsUp)}, fact{"comment", found.Comment}, fact{"at", found.UpdatedAt})
			}, column[api.Feedback]{"thumbsUp", func(f api.Feedback) any { return f.ThumbsUp }}, column[api.Feedback]{"comment", func(f api.Feedback) any { return f.Comment }})
		case "up", "down":
			_, err := api.Read[any](client.SubmitFeedback(ctx, id, api.AgentRunFeedbackRequest{ThumbsUp: rating == "up", Comment: given[string](comment)}))
			if err != nil {
				return err
			}

			return p.done("Rated %s.", rating)
		case "none":
			if _, err := api.Read[any](client.DeleteFeedback(ctx, id)); err != nil {
				return err
			}

			return p.done("Withdrew the rating.")
		default:
			return usageError{fmt.Errorf("a rating must be up, down or none, not %q", rating), "quern rate"}
		}
	})
	command.Long = "Rate an answer, or withdraw the rating. Without a rating, show yours. `quern ask` prints the id of the run."
	command.Flags().StringVar(&comment, "comment", "", "comment on the answer")

	return command
}

// recentRuns returns the caller's last runs. It does not read on for ever: a beginning of an id is for what was asked lately.
func recentRuns(ctx context.Context, client *api.Client) iter.Seq2[api.RunItem, error] {
	const most = 1000

	return func(yield func(api.RunItem, error) bool) {
		read := 0

		for run, err := range allRuns(ctx, client, api.ListRunsParams{}) {
			if read++; read > most || !yield(run, err) {
				return
			}
		}
	}
}

func thumb(up bool) string {
	if up {
		return "up"
	}

	return "down"
}
