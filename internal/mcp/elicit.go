package mcp

import (
	"fmt"
	"strconv"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/google/uuid"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/run"
)

// optionName names the question to the user and its only field.
const optionName = "option"

// asksUsers reports whether a host can ask its user a question of the server. Hosts with a version of the protocol before the
// stateless one are not asked: their answer may reach another replica than the one that waits for it.
func asksUsers(request *sdk.CallToolRequest) bool {
	if request.Extra.Header.Get("Mcp-Protocol-Version") < stateless {
		return false
	}

	declared, _ := request.Params.Meta[sdk.MetaKeyClientCapabilities].(map[string]any)
	modes, declares := declared["elicitation"].(map[string]any)
	_, hasForms := modes["form"]
	_, hasURLs := modes["url"]

	return declares && (hasForms || !hasURLs)
}

type formSchema struct {
	Type       string               `json:"type"`
	Properties map[string]formField `json:"properties"`
	Required   []string             `json:"required"`
}

type formField struct {
	Type  string       `json:"type"`
	Title string       `json:"title"`
	OneOf []formChoice `json:"oneOf"`
}

type formChoice struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// question returns the result that makes a host ask its user which option is meant. The host then repeats the call with the
// answer and the state, to any replica. The state is only the name of the run, which grants nothing.
func question(r shownRun) *sdk.CallToolResult {
	field := formField{Type: "string", Title: "Interpretation"}
	for _, o := range r.Clarification.Options {
		field.OneOf = append(field.OneOf, formChoice{strconv.Itoa(o.Number), o.Interpretation})
	}

	return &sdk.CallToolResult{RequestState: r.RunID.String(), InputRequests: sdk.InputRequestMap{optionName: &sdk.ElicitParams{
		Mode: "form", Message: r.Clarification.Question,
		RequestedSchema: formSchema{Type: "object", Properties: map[string]formField{optionName: field}, Required: []string{optionName}},
	}}}
}

// isQuestion reports whether a value is a run that waits for a choice between options.
func isQuestion(value any) (shownRun, bool) {
	r, isRun := value.(shownRun)

	return r, isRun && r.Status == run.Waiting && r.Clarification != nil && len(r.Clarification.Options) > 0
}

// declined reports whether the user gave no answer.
func declined(request *sdk.CallToolRequest) bool {
	said, isSaid := request.Params.InputResponses[optionName].(*sdk.ElicitResult)

	return request.Params.RequestState != "" && (!isSaid || said.Action != "accept")
}

// resume continues a call whose host has asked its user. Without an answer the run still waits, and the result says so.
func (s *Server) resume(call *invocation) (any, error) {
	id, err := uuid.Parse(call.request.Params.RequestState)
	if err != nil {
		return nil, fault.Invalid("requestState", "is not that of an earlier result; call the tool without it")
	}

	if declined(call.request) {
		found, err := s.Runs.Get(call, call.who, id)
		if err != nil {
			return nil, noRun(err)
		}

		return showRun(found), nil
	}

	said, _ := call.request.Params.InputResponses[optionName].(*sdk.ElicitResult) // it was not declined

	option, err := strconv.Atoi(fmt.Sprint(said.Content[optionName]))
	if err != nil {
		return nil, fault.Invalid(optionName, "must be the number of an option")
	}

	return s.chosen(call, id, option)
}
