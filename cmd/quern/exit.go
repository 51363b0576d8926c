package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"quern.dev/quern/api"
)

// Exit codes, as documented in docs/cli.md.
const (
	exitOther       = 1
	exitUsage       = 2
	exitSignIn      = 3
	exitForbidden   = 4
	exitNotFound    = 5
	exitState       = 6
	exitInvalid     = 7
	exitUnavailable = 8
	exitNotLoaded   = 9
	exitNoAnswer    = 10
	exitWorse       = 11
	exitInterrupted = 130
)

// usageError is an invalid command line.
type usageError struct {
	error

	command string
}

// exitError is a failure with its own exit code and a hint for the user.
type exitError struct {
	code       int
	text, hint string
}

func (e exitError) Error() string { return e.text }

// report prints what failed and what to do next, and returns the exit code.
func (p *program) report(err error, interrupted bool) int {
	if err == nil {
		return 0
	}

	code, hint := explain(err)
	if interrupted && errors.Is(err, context.Canceled) {
		if p.err.screen && !p.stopped {
			p.err.printf("\n")
		}

		return exitInterrupted
	}

	text := err.Error()
	if code == exitNotFound {
		text, _, _ = strings.Cut(text, " GET /") // the hint names a command instead of an operation
	}

	if text != "" {
		p.err.tellf("%s %s", p.err.style(red, "quern:"), p.err.clean(text))
	}

	if hint != "" {
		p.err.tellf("%s", p.err.clean(hint))
	}

	return code
}

func explain(err error) (code int, hint string) {
	if wrong, is := errors.AsType[usageError](err); is {
		return exitUsage, "See: " + wrong.command + " --help"
	}

	if own, is := errors.AsType[exitError](err); is {
		return own.code, own.hint
	}

	if answer, is := errors.AsType[*api.Error](err); is {
		return explainAnswer(answer)
	}

	network, isNetwork := errors.AsType[net.Error](err)
	if failed, is := errors.AsType[*url.Error](err); is && (isNetwork || failed.Timeout()) {
		if isNetwork && network.Timeout() {
			return exitUnavailable, "The server did not answer in time. Try again later."
		}

		return exitUnavailable, "Check that the address is correct and that the server is running. --server or QUERN_SERVER sets another address."
	}

	return exitOther, ""
}

// explainAbsent returns the command that lists what was not found.
func explainAbsent(message string) string {
	for kind, hint := range map[string]string{
		"run": "`quern runs` lists your questions.", "conversation": "`quern conversation list` lists yours.",
		"API token": "`quern token list` lists yours.", "upload session": "`quern uploads` lists yours.",
		"benchmark":  "`quern benchmark list NAMESPACE` lists those that you can see.",
		"connection": "`quern connection list` lists those that you may use. The owner of another one shares it with `quern connection share`.",
		"source":     "`quern source list` lists yours.",
	} {
		if strings.HasPrefix(message, "There is no "+kind+" ") {
			return hint
		}
	}

	return "It does not exist, or it is not shared with you. `quern dataset list` shows what you can see."
}

// explainForbidden returns who can give the right that is missing, or "" if the message says so.
func explainForbidden(message string) string {
	switch {
	case strings.Contains(message, "quern connection share"): // a right to use a connection is no role
		return "`quern connection list` shows the owner of each connection, who gives others the right to use it with `quern connection share`; `quern whoami` shows who you are."
	case strings.Contains(message, "token with the role"): // of the token in use, whatever is shared
		return "`quern token create NAME --role ROLE`, without this token, makes another one; `quern whoami` shows who you are."
	case strings.Contains(message, "role"):
		return "The owner can give you another role with `quern share`; `quern whoami` shows who you are."
	default:
		return ""
	}
}

func explainAnswer(answer *api.Error) (code int, hint string) {
	switch answer.ErrorCode {
	case api.UNAUTHORIZED:
		return exitSignIn, "Sign in with `quern login`, or check QUERN_TOKEN."
	case api.FORBIDDEN:
		return exitForbidden, explainForbidden(answer.Message)
	case api.NOTFOUND:
		return exitNotFound, explainAbsent(answer.Message)
	case api.CONFLICT, api.PRECONDITIONFAILED, api.INVALIDSTATE, api.RUNNOTCOMPLETED:
		return exitState, ""
	case api.BADREQUEST, api.VALIDATIONFAILED, api.QUERYINVALID, api.LIMITEXCEEDED, api.PAYLOADTOOLARGE, api.UNSUPPORTEDMEDIATYPE, api.NOTACCEPTABLE:
		return exitInvalid, ""
	case api.RATELIMITED, api.UNAVAILABLE:
		if answer.RetryAfter > 0 {
			return exitUnavailable, fmt.Sprintf("Try again in %s.", answer.RetryAfter.Round(time.Second))
		}

		return exitUnavailable, "Try again in a moment."
	case api.TIMEOUT:
		return exitUnavailable, "The server limits the time of a request. Request less data."
	case api.UPSTREAMUNAVAILABLE:
		return exitUnavailable, "Nothing was recorded. Try again later."
	default:
		hint = "This is an error of the server, or the address is not that of a Quern server."
		if answer.RequestID != "" {
			hint = "This is an error of the server. Its operator can find it in the log by the request id " + answer.RequestID + "."
		}

		return exitOther, hint
	}
}
