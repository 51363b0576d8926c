package main

import (
	_ "embed"
	"encoding/json"
	"html/template"
	"os"
)

//go:embed page.html
var pageText string

// writePage writes a page with the figures and every answer that is not right.
func (r *report) writePage(name string) error {
	page, err := template.New("page").Funcs(template.FuncMap{"cell": cellText}).Parse(pageText)
	if err != nil {
		return err
	}

	to, err := os.Create(name)
	if err != nil {
		return err
	}
	defer to.Close()

	var bad []line

	for _, q := range r.Questions {
		if q.Verdict != right && q.Verdict != refusedRight {
			bad = append(bad, q)
		}
	}

	if err := page.Execute(to, struct {
		*report

		Heads  []string
		Rows   []row
		Bad    []line
		Secret bool
	}{r, row{}.Heads(), r.rows(), bad, r.Split == heldOut}); err != nil {
		return err
	}

	return to.Close()
}

func cellText(cell any) string {
	if text, is := cell.(string); is {
		return text
	}

	text, err := json.Marshal(cell)
	if err != nil {
		return err.Error()
	}

	return string(text)
}
