package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// suggestions is the largest number of commands that are suggested.
const suggestions = 5

// habits returns the names of our commands for what other programs call differently.
func habits(word string) []string {
	return map[string][]string{
		"ls": {"list"}, "dir": {"list"}, "ll": {"list"}, "rm": {"delete", "revoke"}, "del": {"delete", "revoke"}, "remove": {"delete", "revoke"}, "drop": {"delete"},
		"mv": {"rename"}, "move": {"rename"}, "cat": {"rows", "export"}, "head": {"rows"}, "show": {"show", "rows"}, "info": {"show"}, "get": {"show", "export"},
		"cp": {"upload", "export"}, "put": {"upload"}, "load": {"upload"}, "import": {"upload"}, "download": {"export"}, "sql": {"query"}, "select": {"query"},
		"find": {"search"}, "grep": {"search"}, "new": {"create"}, "mkdir": {"create"}, "log": {"history", "audit"}, "undo": {"restore"}, "undelete": {"restore"}, "trash": {"deleted"}, "stop": {"cancel"}, "kill": {"cancel"},
		"grant": {"share"}, "revoke": {"unshare", "revoke"}, "signin": {"login"},
	}[strings.ToLower(word)]
}

// otherWay returns what to use instead of a flag that other programs have, or "". The text is cobra's error for the flag.
func otherWay(text string) string {
	switch _, flag, _ := strings.Cut(text, "--"); flag {
	case "where", "filter", "sort", "order-by", "group-by":
		return " To select, sort or sum rows, use `quern query` with SQL."
	case "json", "csv", "format":
		return " To choose the output format, use -o table, json, csv or ndjson."
	default:
		return ""
	}
}

// didYouMean returns a question with the commands that a word may mean, or "". Commands of datasets are first.
func didYouMean(at *cobra.Command, word string) string {
	var found []string

	names := append(habits(word), strings.ToLower(word))

	for i, name := range names {
		if slices.Contains(names[:i], name) {
			continue
		}

		var paths []string

		walk(at, func(command *cobra.Command) {
			if command.Name() == name {
				paths = append(paths, command.CommandPath())
			}
		})
		slices.SortStableFunc(paths, func(a, b string) int { return rank(a) - rank(b) })

		found = append(found, paths...)
	}

	if len(found) == 0 && len(word) > 3 { // a short word is similar to any other
		at.SuggestionsMinimumDistance = 2 // letters, as cobra itself does

		for _, name := range at.SuggestionsFor(word) {
			found = append(found, at.CommandPath()+" "+name)
		}
	}

	if len(found) == 0 {
		return ""
	}

	return "Did you mean `" + strings.Join(found[:min(suggestions, len(found))], "`, `") + "`?"
}

func rank(path string) int {
	if strings.HasPrefix(path, "quern dataset ") {
		return 0
	}

	return 1
}

func walk(at *cobra.Command, visit func(*cobra.Command)) {
	for _, child := range at.Commands() {
		if child.IsAvailableCommand() {
			visit(child)
			walk(child, visit)
		}
	}
}

// unknownCommand replaces cobra's error for a word that is no command of root. Other errors are returned unchanged.
func unknownCommand(root *cobra.Command, err error) error {
	if err == nil || !strings.HasPrefix(err.Error(), "unknown command ") { // an error of cobra
		return err
	}

	_, rest, _ := strings.Cut(err.Error(), `"`)
	word, _, _ := strings.Cut(rest, `"`)

	return unknown(root, word)
}

// unknown returns the error for a word that is no command of at.
func unknown(at *cobra.Command, word string) error {
	hint := "See: " + at.CommandPath() + " --help"
	if meant := didYouMean(at, word); meant != "" {
		hint = meant + " " + hint
	}

	return exitError{exitUsage, at.CommandPath() + " has no command \"" + word + "\"", hint}
}
