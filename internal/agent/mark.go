package agent

import (
	"strings"
	"unicode/utf8"

	"quern.dev/quern/internal/grounding"
)

// The sign after a claim that was not found in the rows, and the sentence at the end of such an answer that explains it.
const (
	doubtSign = " (?)"
	doubtNote = "(?) The rows do not confirm this."
)

// setAnswer sets the response, the checks, the citations and the outcome from a report.
func (r *Result) setAnswer(report grounding.Report) {
	r.Checks, r.Citations = &Checks{Claims: len(report.Claims), Unverified: []string{}}, nil

	for _, claim := range report.Claims {
		if !claim.Verified {
			r.Checks.Unverified = append(r.Checks.Unverified, claim.Text)

			continue
		}

		r.Checks.Verified++

		for _, from := range claim.Sources {
			r.Citations = append(r.Citations, Citation{Claim: claim.Text, Step: from.Step, Row: from.Row, Column: from.Column, Calculation: claim.Calculation})
		}
	}

	if r.Response, r.Checks.Places = marked(prose(report.Text), report); len(r.Checks.Unverified) > 0 {
		r.Response += "\n\n" + doubtNote
		r.Outcome = AnswerUnverified
	}
}

// marked returns the text with a sign after each claim that is not verified, and the places of all claims in it. text is the
// text of the report. It is shorter if a link was removed.
func marked(text string, report grounding.Report) (string, []Place) {
	var (
		out    strings.Builder
		places []Place
		done   int // bytes of text that are written
		length int // characters that are written
	)

	write := func(part string) {
		out.WriteString(part)
		length += utf8.RuneCountInString(part)
	}

	for _, claim := range report.Claims {
		at := claim.At
		if text != report.Text {
			if at = strings.Index(text[done:], claim.Text); at >= 0 {
				at += done
			}
		}

		if at < done { // it was removed, or lies within the claim before it
			continue
		}

		write(text[done:at])
		places = append(places, Place{Claim: claim.Text, Start: length, End: length + utf8.RuneCountInString(claim.Text), Verified: claim.Verified})
		write(claim.Text)

		if done = at + len(claim.Text); !claim.Verified {
			write(doubtSign)
		}
	}

	write(text[done:])

	return out.String(), places
}
