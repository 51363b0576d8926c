package exchange

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

func (r *reader) document(n *yaml.Node) (found document) {
	r.object(n, "document", readers{
		"version": r.text(&found.Version),
		"semantic_model": func(n *yaml.Node, entry string) {
			r.list(n, entry, func(one *yaml.Node) { found.Models = append(found.Models, r.model(one)) })
		},
	}, "dialects", "vendors")

	switch {
	case r.err != nil:
	case !strings.HasPrefix(found.Version, "0.1.") && !strings.HasPrefix(found.Version, "0.2."):
		r.failf(n, "version must be 0.1 or 0.2 of the Open Semantic Interchange, not %q", cut(found.Version))
	case only(n, "semantic_model") == nil:
		r.failf(n, "semantic_model is missing")
	}

	return found
}

func (r *reader) model(n *yaml.Node) (found model) {
	r.object(n, "semantic_model", readers{
		"name":       r.text(&found.Name),
		"ai_context": r.context(&found.Context),
		"datasets": func(n *yaml.Node, entry string) {
			r.list(n, entry, func(one *yaml.Node) { found.Datasets = append(found.Datasets, r.dataset(one)) })
		},
		"relationships": func(n *yaml.Node, entry string) {
			r.list(n, entry, func(one *yaml.Node) { found.Relationships = append(found.Relationships, r.relationship(one)) })
		},
		"metrics": func(n *yaml.Node, entry string) {
			r.list(n, entry, func(one *yaml.Node) { found.Metrics = append(found.Metrics, r.metric(one)) })
		},
		"custom_extensions": r.extensions(&found.Extensions),
	}, "description")

	if found.Context.Synonyms != nil {
		r.note("model "+cut(found.Name), "Synonyms of models are not kept.")
	}

	return found
}

func (r *reader) dataset(n *yaml.Node) (found dataset) {
	r.object(n, r.named(n, "dataset"), readers{
		"name":        r.text(&found.Name),
		"source":      r.text(&found.Source),
		"description": r.text(&found.Description),
		"ai_context":  r.context(&found.Context),
		"fields": func(n *yaml.Node, entry string) {
			r.list(n, entry, func(one *yaml.Node) { found.Fields = append(found.Fields, r.field(one, found.Name)) })
		},
		"custom_extensions": r.extensions(&found.Extensions),
	}, "primary_key", "unique_keys")

	if found.Context.Synonyms != nil {
		r.note("dataset "+cut(found.Name), "Synonyms of datasets are not kept.")
	}

	return found
}

func (r *reader) field(n *yaml.Node, of string) (found field) {
	r.object(n, r.named(n, "field of "+cut(of)), readers{
		"name":       r.text(&found.Name),
		"expression": r.expression(&found.Expression),
		"dimension": func(n *yaml.Node, entry string) {
			found.Dimension = &dimension{}
			r.object(n, entry, readers{"is_time": func(n *yaml.Node, entry string) { found.Dimension.IsTime = r.scalar(n, entry) == "true" }})
		},
		"ai_context":        r.context(&found.Context),
		"custom_extensions": r.extensions(&found.Extensions),
	}, "label", "description", "datatype")

	return found
}

func (r *reader) relationship(n *yaml.Node) (found relationship) {
	r.object(n, r.named(n, "relationship"), readers{
		"name":         r.text(&found.Name),
		"from":         r.text(&found.From),
		"to":           r.text(&found.To),
		"from_columns": r.texts(&found.FromColumns),
		"to_columns":   r.texts(&found.ToColumns),
	}, "ai_context", "custom_extensions")

	return found
}

func (r *reader) metric(n *yaml.Node) (found metric) {
	r.object(n, r.named(n, "metric"), readers{
		"name":              r.text(&found.Name),
		"expression":        r.expression(&found.Expression),
		"ai_context":        r.context(&found.Context),
		"custom_extensions": r.extensions(&found.Extensions),
	}, "description", "datatype")

	return found
}

// named returns what an entry is called in messages, and fails if it has no name.
func (r *reader) named(n *yaml.Node, kind string) string {
	for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
		if value := n.Content[i+1]; n.Content[i].Value == "name" && value.Kind == yaml.ScalarNode && value.Value != "" {
			return kind + " " + cut(value.Value)
		}
	}

	r.failf(n, "a %s has no name", kind)

	return kind
}

func (r *reader) expression(into *expression) func(*yaml.Node, string) {
	return func(n *yaml.Node, entry string) {
		r.object(n, entry, readers{"dialects": func(n *yaml.Node, entry string) {
			r.list(n, entry, func(one *yaml.Node) {
				var found dialectExpression

				r.object(one, entry, readers{"dialect": r.text(&found.Dialect), "expression": r.text(&found.Expression)})
				into.Dialects = append(into.Dialects, found)
			})
		}})
	}
}

func (r *reader) context(into *aiContext) func(*yaml.Node, string) {
	return func(n *yaml.Node, entry string) {
		if n.Kind == yaml.ScalarNode {
			r.note(entry, "Its ai_context is a text. Only a list of synonyms is read.")

			return
		}

		if n.Kind == yaml.MappingNode { // the format allows other keys
			r.object(&yaml.Node{Kind: yaml.MappingNode, Line: n.Line, Content: only(n, "synonyms")}, entry, readers{"synonyms": r.texts(&into.Synonyms)})

			return
		}

		r.failf(n, "ai_context must be text, or have keys and values")
	}
}

// only returns a key and its value as the content of an object.
func only(n *yaml.Node, key string) (list []*yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			list = append(list, n.Content[i], n.Content[i+1])
		}
	}

	return list
}

func (r *reader) extensions(into *[]extension) func(*yaml.Node, string) {
	return func(n *yaml.Node, entry string) {
		r.list(n, entry, func(one *yaml.Node) {
			var found extension

			r.object(one, entry, readers{"vendor_name": r.text(&found.Vendor), "data": r.text(&found.Data)})
			*into = append(*into, found)
		})
	}
}
