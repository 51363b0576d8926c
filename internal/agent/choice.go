package agent

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Choice asks the caller which interpretation of a question is meant.
type Choice struct {
	Question string   `json:"question"`
	Options  []Option `json:"options"`
}

// Option is one interpretation of a question. If it has a statement, the statement runs when the option is chosen, and no
// model is called.
type Option struct {
	Number         int             `json:"number"` // from 1
	Interpretation string          `json:"interpretation"`
	Query          string          `json:"query,omitempty"`
	Form           json.RawMessage `json:"form,omitempty"`
	Explained      []Explained     `json:"explained,omitempty"`
}

// UnmarshalJSON also accepts a bare text, which is how models write an option.
func (o *Option) UnmarshalJSON(content []byte) error {
	if json.Unmarshal(content, &o.Interpretation) == nil {
		return nil
	}

	type plain Option

	return json.Unmarshal(content, (*plain)(o))
}

// clean removes links, addresses and HTML from the text, which a model wrote or which quotes data. It leaves out options
// without text and numbers the others.
func (c *Choice) clean() {
	if c == nil {
		return
	}

	c.Question = prose(c.Question)
	kept := []Option{}

	for _, o := range c.Options {
		if o.Interpretation = prose(o.Interpretation); o.Interpretation != "" {
			o.Number = len(kept) + 1
			kept = append(kept, o)
		}
	}

	c.Options = kept
}

func (c *Choice) words() []string {
	if c == nil {
		return nil
	}

	words := []string{c.Question}
	for _, o := range c.Options {
		words = append(words, o.Interpretation)
	}

	return words
}

// Option returns the option with a number.
func (c *Choice) Option(number int) (Option, bool) {
	for _, o := range c.Options {
		if o.Number == number {
			return o, true
		}
	}

	return Option{}, false
}

// Asks reports whether the result asks for a choice.
func (r *Result) Asks() bool {
	return r.Outcome == Clarification && r.Clarification != nil && len(r.Clarification.Options) > 0
}

// Chosen is an option that the caller chose.
type Chosen struct {
	Option

	Asked string `json:"asked"` // what the agent asked
	Event int64  `json:"event"` // number of the event of the choice
}

// UnmarshalJSON is necessary because that of Option would be promoted.
func (c *Chosen) UnmarshalJSON(content []byte) error {
	type (
		option Option
		plain  struct {
			option

			Asked string `json:"asked"`
			Event int64  `json:"event"`
		}
	)

	var p plain
	if err := json.Unmarshal(content, &p); err != nil {
		return err
	}

	*c = Chosen{Option(p.option), p.Asked, p.Event}

	return nil
}

// LastChosen returns the option that the caller chose last; nil if there was no choice.
func (q Question) LastChosen() *Chosen {
	if len(q.Chosen) == 0 {
		return nil
	}

	return &q.Chosen[len(q.Chosen)-1]
}

// chosenStatement reports whether the caller chose an option that has a statement.
func (q Question) chosenStatement() bool {
	last := q.LastChosen()

	return last != nil && last.Query != ""
}

// withAnswers returns the question with what the caller answered when a model asked back. A model sees it as the question.
func (q Question) withAnswers() Question {
	if q.chosenStatement() { // no model sees it
		return q
	}

	var text strings.Builder

	text.WriteString(q.Text)

	for _, one := range q.Chosen {
		fmt.Fprintf(&text, "\n\nYou asked: %s\nThe answer: %s", one.Asked, one.Interpretation)
	}

	q.Text = text.String()

	return q
}
