package exchange

import (
	"bytes"
	"encoding/json"

	"go.yaml.in/yaml/v3"
)

// MaxDocument is how many bytes a document may have. As a field of JSON it is larger, and must fit the largest body.
const MaxDocument = 700_000

const (
	version = "0.1.1"  // the only release of the format
	vendor  = "COMMON" // the released schema allows only vendors that it lists; the data has the key quern
	dialect = "ANSI_SQL"
)

// document is a file of the format. The order of the fields is the order in the file.
type document struct {
	Version string  `yaml:"version"`
	Models  []model `yaml:"semantic_model"`
}

type model struct {
	Name          string         `yaml:"name"`
	Context       aiContext      `yaml:"ai_context,omitempty"`
	Datasets      []dataset      `yaml:"datasets"`
	Relationships []relationship `yaml:"relationships,omitempty"`
	Metrics       []metric       `yaml:"metrics,omitempty"`
	Extensions    []extension    `yaml:"custom_extensions,omitempty"`
}

type dataset struct {
	Name        string      `yaml:"name"`
	Source      string      `yaml:"source"`
	UniqueKeys  [][]string  `yaml:"unique_keys,omitempty,flow"`
	Description string      `yaml:"description,omitempty"`
	Context     aiContext   `yaml:"ai_context,omitempty"`
	Fields      []field     `yaml:"fields,omitempty"`
	Extensions  []extension `yaml:"custom_extensions,omitempty"`
}

type field struct {
	Name        string      `yaml:"name"`
	Expression  expression  `yaml:"expression"`
	Dimension   *dimension  `yaml:"dimension,omitempty"`
	Description string      `yaml:"description,omitempty"`
	Context     aiContext   `yaml:"ai_context,omitempty"`
	Extensions  []extension `yaml:"custom_extensions,omitempty"`
}

type dimension struct {
	IsTime bool `yaml:"is_time"`
}

type relationship struct {
	Name        string   `yaml:"name"`
	From        string   `yaml:"from"`
	To          string   `yaml:"to"`
	FromColumns []string `yaml:"from_columns,flow"`
	ToColumns   []string `yaml:"to_columns,flow"`
}

type metric struct {
	Name       string      `yaml:"name"`
	Expression expression  `yaml:"expression"`
	Context    aiContext   `yaml:"ai_context,omitempty"`
	Extensions []extension `yaml:"custom_extensions,omitempty"`
}

type expression struct {
	Dialects []dialectExpression `yaml:"dialects"`
}

type dialectExpression struct {
	Dialect    string `yaml:"dialect"`
	Expression string `yaml:"expression"`
}

type aiContext struct {
	Instructions string   `yaml:"instructions,omitempty"`
	Synonyms     []string `yaml:"synonyms,omitempty"`
	Examples     []string `yaml:"examples,omitempty"`
}

// IsZero tells the encoder to leave out an empty context.
func (c aiContext) IsZero() bool {
	return c.Instructions == "" && len(c.Synonyms) == 0 && len(c.Examples) == 0
}

type extension struct {
	Vendor string `yaml:"vendor_name"`
	Data   string `yaml:"data"` // JSON
}

// in returns an expression in the dialect that every tool reads.
func in(text string) expression {
	return expression{[]dialectExpression{{dialect, text}}}
}

// ansi returns the expression in the dialect that every tool reads, "" if there is none.
func (e expression) ansi() string {
	for _, one := range e.Dialects {
		if one.Dialect == dialect {
			return one.Expression
		}
	}

	return ""
}

// extended returns what only Quern reads, as a list of extensions.
func extended(content any) ([]extension, error) {
	var text bytes.Buffer

	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)

	if err := encoder.Encode(map[string]any{"quern": content}); err != nil {
		return nil, err
	}

	return []extension{{vendor, string(bytes.TrimSpace(text.Bytes()))}}, nil
}

// own returns the extension of Quern, "" if there is none. Other tools may write extensions with the same vendor.
func own(list []extension) string {
	for _, one := range list {
		var found struct {
			Quern json.RawMessage `json:"quern"`
		}

		if one.Vendor == vendor && json.Unmarshal([]byte(one.Data), &found) == nil && found.Quern != nil {
			return string(found.Quern)
		}
	}

	return ""
}

// text returns the document as YAML.
func (d document) text() (string, error) {
	const indent = 2

	var text bytes.Buffer

	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(indent)

	if err := encoder.Encode(d); err != nil {
		return "", err
	}

	return text.String(), encoder.Close()
}
