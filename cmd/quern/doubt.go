package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"quern.dev/quern/api"
)

// acceptAll is the code that accepts every doubt.
const acceptAll = string(api.All)

// tell prints doubts, each with its code if it has one.
func (l *loading) tell(doubts []api.Doubt) {
	for _, doubt := range doubts {
		text := doubt.Message
		if doubt.Column != nil {
			text = *doubt.Column + ": " + text
		}

		if doubt.Code != nil {
			text += " (" + *doubt.Code + ")"
		}

		l.err.tellf("%s %s", l.err.style(red, "doubt:"), l.err.clean(text))
	}
}

// unsettled returns the doubts that were not accepted, and the codes of those that stop the load.
func (l *loading) unsettled(doubts []api.Doubt) (open []api.Doubt, codes []string) {
	for _, doubt := range doubts {
		if doubt.Code != nil && (slices.Contains(l.wish.accept, acceptAll) || slices.Contains(l.wish.accept, *doubt.Code)) {
			continue
		}

		if open = append(open, doubt); doubt.Code != nil && !slices.Contains(codes, *doubt.Code) {
			codes = append(codes, *doubt.Code)
		}
	}

	return open, codes
}

// confirmDoubts asks the user whether to load in spite of doubts. Without a terminal, doubts with a code stop the load.
func (l *loading) confirmDoubts(doubts []api.Doubt) error {
	open, codes := l.unsettled(doubts)

	switch {
	case l.wish.yes, len(open) == 0:
		return nil
	case l.err.screen:
		if err := l.confirm(false, "Load the files as shown?"); err != nil {
			return err
		}

		l.wish.accept = append(l.wish.accept, codes...)

		return nil
	case len(codes) > 0:
		return exitError{
			exitNotLoaded, "the files were not loaded because of doubts: " + strings.Join(codes, ", "),
			fmt.Sprintf("Use --accept %s to load them anyway, or --yes to accept every doubt.", strings.Join(codes, ",")),
		}
	default:
		return nil
	}
}

// accepted returns the accepted codes, or nil if there are none.
func (l *loading) accepted() *[]api.DoubtCode {
	var codes []api.DoubtCode
	for _, code := range l.wish.accept {
		codes = append(codes, api.DoubtCode(code))
	}

	if codes == nil {
		return nil
	}

	return &codes
}

// settle asks the user about an ingestion that waits, and continues or cancels it.
func (l *loading) settle(ctx context.Context, waiting api.Ingestion) (api.Ingestion, error) {
	var doubts []api.Doubt
	if waiting.Doubts != nil {
		doubts = slices.DeleteFunc(*waiting.Doubts, func(d api.Doubt) bool { return d.Code == nil })
	}

	doubts, _ = l.unsettled(doubts)
	l.tell(doubts)

	if err := l.confirmDoubts(doubts); err != nil {
		// The uploaded files now belong to this dataset; to load them into another one, they must be uploaded again.
		l.declined = true
		_, _ = api.Read[api.Ingestion](l.client.CancelIngestion(context.WithoutCancel(ctx), l.at.owner, l.at.namespace, l.at.dataset, waiting.ID))

		return waiting, err
	}

	again, err := api.Read[api.Ingestion](l.client.RetryIngestion(ctx, l.at.owner, l.at.namespace, l.at.dataset, waiting.ID, api.IngestionRetry{Accept: l.accepted()}))
	if err != nil {
		return again, err
	}

	return l.outcome(ctx, again)
}
