package main

import (
	"bufio"
	"cmp"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func yesFlag(command *cobra.Command, yes *bool) {
	command.Flags().BoolVarP(yes, "yes", "y", false, "do not ask for confirmation")
}

// confirm asks the user at the terminal. A program must pass --yes instead.
func (p *program) confirm(yes bool, question string) error {
	if yes {
		return nil
	}

	if !newTerminal(os.Stdin).screen || !p.err.screen {
		return exitError{exitUsage, question, "Use --yes to skip this question."}
	}

	p.err.printf("%s [y/N] ", p.err.clean(question))

	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return exitError{exitOther, "nothing was done", ""}
	}

	return nil
}

func sortBy[T any, K cmp.Ordered](items []T, key func(T) K) {
	slices.SortFunc(items, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
}
