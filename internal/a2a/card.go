package a2a

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"

	protocol "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/google/uuid"
)

const (
	cardPath = "/.well-known/agent-card.json"
	cardKept = "public, max-age=300"

	// metadataURI identifies the extension that describes the metadata of a message.
	metadataURI = "https://quern.dev/a2a/metadata/v1"
	// artifactsURI identifies the extension that describes artifacts.
	artifactsURI = "https://quern.dev/a2a/artifacts/v1"

	plainText = "text/plain"
	markdown  = "text/markdown"
	jsonType  = "application/json"

	shownNamespaces = 100
)

// profile describes one agent.
type profile struct {
	name        string
	description string
	skill       protocol.AgentSkill
	examples    []string
	output      []string
	forms       map[string]map[string]string // names of the schemas of artifacts: of their data, of their metadata
	order       func(*telling) order
	bare        bool // its stream does not begin with the task
	talk        talk
}

func profiles() []profile {
	const preview = " In preview: the interface may change."

	return []profile{
		{
			name:        "nl2ql",
			description: "Turns a question about the caller's datasets into one query and returns the query with its rows." + preview,
			skill: protocol.AgentSkill{
				ID: "nl2ql", Name: "Question to query", Tags: []string{"query", "nl2ql"},
				Description: "Writes a read-only query for a question in plain language, runs it and returns its rows.",
			},
			examples: []string{"How many orders came from Vienna last month?", "List the ten largest invoices."},
			output:   []string{plainText, jsonType},
			forms:    map[string]map[string]string{queryArtifact: {"metadata": "statement"}, rowsArtifact: {"data": "rows"}},
			order:    func(t *telling) order { return &queryOrder{telling: t} },
			bare:     true,
			talk:     oneQuestion{},
		},
		{
			name:        "assistant",
			description: "Answers questions about the caller's datasets in words, with the queries and the rows behind the answer." + preview,
			skill: protocol.AgentSkill{
				ID: "assistant", Name: "Assistant", Tags: []string{"assistant", "rag", "query"},
				Description: "Plans the steps to an answer, queries the data for each step, and answers in words that are checked against the rows.",
			},
			examples: []string{"Which region grew most this year, and why?", "Compare this quarter's returns with the last one's."},
			output:   []string{markdown, plainText, jsonType},
			forms:    map[string]map[string]string{"step-N": {"data": "rows", "metadata": "statement"}, answerArtifact: {"data": "outcome"}},
			order:    func(t *telling) order { return &answerOrder{telling: t} },
			talk:     oneQuestion{},
		},
	}
}

// card is an agent card. It has the proto3 JSON form where the library uses another form.
type card struct {
	protocol.AgentCard

	Capabilities         capabilities  `json:"capabilities"`
	SecurityRequirements []requirement `json:"securityRequirements"`
}

type capabilities struct {
	Streaming         bool                      `json:"streaming"`
	PushNotifications bool                      `json:"pushNotifications"`
	ExtendedAgentCard bool                      `json:"extendedAgentCard"`
	Extensions        []protocol.AgentExtension `json:"extensions"`
}

type requirement struct {
	Schemes map[string]scopes `json:"schemes"`
}

type scopes struct {
	List []string `json:"list"`
}

const scheme = "bearer"

func (a *Agents) cardOf(p profile) card {
	return card{
		AgentCard: protocol.AgentCard{
			Name: p.name, Description: p.description, Version: a.Version,
			SupportedInterfaces: []*protocol.AgentInterface{protocol.NewAgentInterface(a.entryOf(p).URL, protocol.TransportProtocolJSONRPC)},
			DefaultInputModes:   []string{plainText},
			DefaultOutputModes:  p.output,
			SecuritySchemes:     protocol.NamedSecuritySchemes{scheme: protocol.HTTPAuthSecurityScheme{Scheme: "Bearer", BearerFormat: "JWT"}},
			Skills:              []protocol.AgentSkill{p.skill},
		},
		Capabilities:         capabilities{Streaming: true, PushNotifications: true, ExtendedAgentCard: true, Extensions: extensions(p)},
		SecurityRequirements: []requirement{{Schemes: map[string]scopes{scheme: {List: []string{}}}}},
	}
}

//go:embed schema.json
var schemaFile []byte

// schemas returns the JSON Schemas of what clients send and receive, by name.
func schemas() map[string]json.RawMessage {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(schemaFile, &all); err != nil {
		panic(err) // the file is part of the program
	}

	return all
}

// extensions returns the extensions of an agent, the one for the metadata of a message first.
func extensions(p profile) []protocol.AgentExtension {
	all, forms := schemas(), map[string]any{}
	for name, form := range p.forms {
		parts := map[string]any{}
		for part, schema := range form {
			parts[part] = all[schema]
		}

		forms[name] = parts
	}

	return []protocol.AgentExtension{
		{URI: metadataURI, Description: "The metadata that a message may have, as a JSON Schema.", Params: map[string]any{"schema": all["metadata"]}},
		{URI: artifactsURI, Description: "The data and the metadata of the artifacts and of the last status message, as JSON Schemas.", Params: map[string]any{
			"artifacts": forms,
			"status":    map[string]any{"TASK_STATE_COMPLETED": all["outcome"], "TASK_STATE_INPUT_REQUIRED": all["outcome"], "TASK_STATE_FAILED": all["failure"]},
		}},
	}
}

// card serves the public card. It changes only with the version or configuration of the service.
func (a *Agents) card(w http.ResponseWriter, r *http.Request, p profile) error {
	text, err := json.Marshal(a.cardOf(p))
	if err != nil {
		return err
	}

	r.Header.Del("Range")
	w.Header().Set("Content-Type", jsonType)
	w.Header().Set("Cache-Control", cardKept)
	w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(text)))
	http.ServeContent(w, r, "", a.began, bytes.NewReader(text))

	return nil
}

// extended returns the card for the caller, with examples and the caller's namespaces.
func (h handler) extended(ctx context.Context) (card, error) {
	names, err := h.namespaces(ctx)
	if err != nil {
		return card{}, err
	}

	full := h.cardOf(h.agent)
	full.Skills[0].Examples = h.agent.examples
	full.Capabilities.Extensions[0].Params["namespaces"] = names

	return full, nil
}

// namespaces returns the first shownNamespaces namespaces that the caller owns, as owner/name.
func (h handler) namespaces(ctx context.Context) ([]string, error) {
	found, _, err := h.Catalog.Namespaces(ctx, h.who, h.who.Username, uuid.Nil, shownNamespaces)
	names := make([]string, len(found))

	for i, n := range found {
		names[i] = n.Owner + "/" + n.Name
	}

	return names, err
}
