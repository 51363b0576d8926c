package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"quern.dev/quern/api"
)

// waitingRun returns the run of a conversation that waits for a choice.
func waitingRun(ctx context.Context, client *api.Client, conversation uuid.UUID) (uuid.UUID, error) {
	for run, err := range allRuns(ctx, client, api.ListRunsParams{ConversationID: &conversation, Status: new(api.RunStatusWaiting)}) {
		return run.RunID, err
	}

	return uuid.Nil, exitError{exitState, "no question of the conversation waits for a choice", "Ask again with `quern ask -c " + conversation.String() + " QUESTION`."}
}

// options prints the options of a clarification.
func (p *program) options(asked *api.Clarification) {
	if asked == nil {
		return
	}

	for _, option := range asked.Options {
		p.out.printf("  %d. %s\n", option.Number, p.out.clean(option.Interpretation))
	}
}

// canChoose reports whether a person is there who can choose an option at once.
func (a *asking) canChoose() bool {
	return !a.raw && a.format == "table" && newTerminal(os.Stdin).screen && a.out.screen && a.err.screen
}

// howToChoose prints the command that chooses an option.
func (a *asking) howToChoose() {
	if !a.raw {
		a.err.printf("Choose with: quern ask -c %s --choose 1\n", a.conversation)
	}
}

// pick asks the person for an option. It returns 0 if none is chosen.
func (a *asking) pick(ctx context.Context, asked api.Clarification) (int, error) {
	prompt := fmt.Sprintf("Choose 1 to %d, or press Enter for none: ", len(asked.Options))
	if len(asked.Options) == 1 {
		prompt = "Is this what you mean? [y/N] "
	}

	lines := bufio.NewReader(os.Stdin)

	for {
		a.err.printf("%s", prompt)

		line, err := readLine(ctx, lines)
		if err != nil {
			return 0, err
		}

		if number, understood := pickOf(line, len(asked.Options)); understood {
			return number, nil
		}
	}
}

// readLine returns the next line without spaces around it. At the end of the input it is empty.
func readLine(ctx context.Context, lines *bufio.Reader) (string, error) {
	read := make(chan string, 1)

	go func() { // reading cannot be interrupted; the program ends soon after Ctrl-C
		line, _ := lines.ReadString('\n')
		read <- line
	}()

	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case line := <-read:
		return strings.ToLower(strings.TrimSpace(line)), nil
	}
}

// pickOf returns the option that a line names; 0 if it names none. understood is false if the line must be asked for again.
func pickOf(line string, options int) (number int, understood bool) {
	switch line {
	case "", "n", "no":
		return 0, true
	case "y", "yes":
		return 1, options == 1
	}

	number, err := strconv.Atoi(line)

	return number, err == nil && number >= 1 && number <= options
}

// conversationOf returns the conversation that --conversation names, and its run that waits for a choice.
func conversationOf(ctx context.Context, client *api.Client, conversation string, args []string) (id, run uuid.UUID, err error) {
	switch {
	case len(args) > 0:
		return id, run, usageError{errors.New("--choose needs no question"), "quern ask"}
	case conversation == "":
		return id, run, usageError{errors.New("--choose needs --conversation"), "quern ask"}
	}

	if id, err = conversationID(ctx, client, conversation); err == nil {
		run, err = waitingRun(ctx, client, id)
	}

	return id, run, err
}
