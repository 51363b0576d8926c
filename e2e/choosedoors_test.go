package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// apiToken returns an API token of the caller, for the command line.
func (d *filled) apiToken() string {
	d.t.Helper()

	return value(d.t, call(d.t, http.MethodPost, d.s.url+"/user/tokens", d.bearer, `{"name": "`+uuid.NewString()+`"}`))
}

// atScreen starts a command at a terminal.
func atScreen(t *testing.T, c *cli, args ...string) (at *screen, wait func() int) {
	t.Helper()

	at, program := openScreen(t)

	command := c.command(args...)
	command.Env = append(command.Env, "TERM=xterm", "NO_COLOR=1")
	command.Stdin, command.Stdout, command.Stderr = program, program, program
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, command.Start())
	require.NoError(t, program.Close())

	return at, func() int {
		_ = command.Wait() // the code says it

		return command.ProcessState.ExitCode()
	}
}

func chooseOnScreen(t *testing.T, d *filled, _ *signer) {
	t.Helper()

	c := d.s.signedIn(t, d.apiToken())
	about := "ada/" + d.namespace

	// Without a terminal the command says how to choose.
	got := c.try("ask", "-n", about, "--agent", "nl2ql", doubtful)
	require.Equal(t, 10, got.code, got.err)
	require.Contains(t, got.out, "Which one do you mean?\n  1. highest *amount* of *")
	require.Contains(t, got.out, "\n  2. highest *amount* of *")
	require.Regexp(t, `^Choose with: quern ask -c [-0-9a-f]{36} --choose 1\n$`, got.err)

	conversation := strings.Fields(got.err)[5]
	wrong := c.try("ask", "-c", conversation, "--choose", "7")
	require.Equal(t, 7, wrong.code)
	require.Contains(t, wrong.err, "must be a number from 1 to 2")

	chosen := c.run("ask", "-c", conversation, "--choose", "2")
	require.Contains(t, chosen, "Highest amount of ")
	require.NotContains(t, chosen, "interpretation:", "the answer says it already")

	again := c.try("ask", "-c", conversation, "--choose", "2")
	require.Equal(t, 6, again.code)
	require.Contains(t, again.err, "no question of the conversation waits for a choice")

	require.Equal(t, 2, c.try("ask", "--choose", "1").code, "a conversation is missing")
	require.Equal(t, 2, c.try("ask", "-c", conversation, "--choose", "1", "Why?").code, "a question is too much")

	d.forgets()

	raw := c.try("ask", "-n", about, "--agent", "nl2ql", "--json", doubtful)
	require.Equal(t, 10, raw.code)
	require.Empty(t, raw.err)
	require.Contains(t, raw.out, `"event":"runWaiting"`)

	// At a terminal a person chooses at once.
	at, wait := atScreen(t, c, "ask", "-n", about, "--agent", "nl2ql", doubtful)
	at.shows("Which one do you mean?")
	at.shows("  1. highest")
	at.shows("Choose 1 to 2, or press Enter for none: ")
	at.types("5\r")
	at.shows("Choose 1 to 2, or press Enter for none: ")
	at.types("2\r")
	at.shows("highest amount")
	at.shows("run: ")
	require.Zero(t, wait())

	d.forgets()

	at, wait = atScreen(t, c, "ask", "-n", about, "--agent", "nl2ql", doubtful)
	at.shows("Choose 1 to 2, or press Enter for none: ")
	at.types("\r")
	require.Equal(t, 10, wait())

	at, wait = atScreen(t, c, "ask", "-n", about, "--agent", "nl2ql", doubtful)
	at.shows("Choose 1 to 2, or press Enter for none: ")
	at.types("\x03")
	require.Equal(t, 130, wait())
}

// chooseYes checks that a single option is a question to which a person says yes or no.
func chooseYes(t *testing.T) {
	t.Parallel()

	s := start(t, scripted)
	d := newFilled(t, s, "ada", s.newKey().token("ada"))
	c := s.signedIn(t, d.apiToken())
	script := `{"outcome": "clarification", "response": "Did you mean this?", "clarification": {"question": "Did you mean this?", "options": ["the orders of 2026"]}, "then": {"response": "It is <chosen>."}}`

	at, wait := atScreen(t, c, "ask", "-n", d.namespace, script)
	at.shows("Did you mean this?")
	at.shows("1. the orders of 2026")
	at.shows("Is this what you mean? [y/N] ")
	at.types("y\r")
	at.shows("It is the orders of 2026.")
	require.Zero(t, wait())

	at, wait = atScreen(t, c, "ask", "-n", d.namespace, script)
	at.shows("Is this what you mean? [y/N] ")
	at.types("n\r")
	require.Equal(t, 10, wait())

	run := d.asks(script, "")
	got := d.choose(run.RunID, `{"option": 2}`)
	require.Equal(t, http.StatusUnprocessableEntity, got.status)
	require.Contains(t, got.body, "must be 1, because the run has one option")
}

// reply returns the parameters of a message to a task.
func (p *peer) reply(id, task, text string) string {
	p.t.Helper()

	return fmt.Sprintf(`{"message": {"messageId": %q, "taskId": %q, "role": "ROLE_USER", "parts": [{"text": %s}]}}`, id, task, encode(p.t, text))
}

// doubts asks the question that has two interpretations, and returns the task and its options.
func (p *peer) doubts() (task a2aTask, options []option) {
	p.t.Helper()
	p.forgets()

	task = *rpcResult(p.t, p.call("SendMessage", p.ask(uuid.NewString(), doubtful, ""))).Task
	require.Equal(p.t, "TASK_STATE_INPUT_REQUIRED", task.Status.State)

	var asked struct{ Options []option }
	require.NoError(p.t, json.Unmarshal([]byte(encode(p.t, task.Status.Message.Metadata["clarification"])), &asked))
	require.Len(p.t, asked.Options, 2)

	return task, asked.Options
}

func chooseOverA2A(t *testing.T, d *filled, _ *signer) {
	t.Helper()

	for _, agent := range []string{"nl2ql", "assistant"} {
		p := newPeer(d, agent)
		task, options := p.doubts()
		require.Contains(t, *task.Status.Message.Parts[0].Text, "\n1. "+options[0].Interpretation+"\n2. "+options[1].Interpretation)
		require.Contains(t, p.call("ListTasks", `{"status": "TASK_STATE_INPUT_REQUIRED"}`).body, task.ID)
		require.Equal(t, "TASK_STATE_INPUT_REQUIRED", p.task("GetTask", task.ID).Status.State)
		require.Equal(t, "waiting", d.run(task.ID).Status)

		// The number of an option continues the task. A repeated message returns the same task.
		message := p.reply(uuid.NewString(), task.ID, "2")

		for range 2 {
			done := *rpcResult(t, p.call("SendMessage", message)).Task
			require.Equal(t, task.ID, done.ID)
			require.Equal(t, task.ContextID, done.ContextID)
			require.Equal(t, "TASK_STATE_COMPLETED", done.Status.State)
			require.Equal(t, options[1].Interpretation, done.Status.Message.Metadata["interpretation"])
			require.Contains(t, encode(t, done.Artifacts), "highest amount")
			require.NotContains(t, encode(t, done.Artifacts), "-- no query")
			require.Len(t, done.Artifacts, 2)
		}

		code, _ := rpcError(t, p.call("SendMessage", p.reply(uuid.NewString(), task.ID, "1")))
		require.Equal(t, -32004, code, "the task has ended")

		// So does the text of an option.
		task, options = p.doubts()
		done := *rpcResult(t, p.call("SendMessage", p.reply(uuid.NewString(), task.ID, options[0].Interpretation))).Task
		require.Equal(t, task.ID, done.ID)
		require.Equal(t, options[0].Interpretation, done.Status.Message.Metadata["interpretation"])
	}

	// A question that was asked over REST.
	p := newPeer(d, "nl2ql")
	run := d.choosing(doubtful)
	require.Equal(t, "TASK_STATE_INPUT_REQUIRED", p.task("GetTask", run.RunID).Status.State)
	require.Equal(t, "TASK_STATE_COMPLETED", rpcResult(t, p.call("SendMessage", p.reply(uuid.NewString(), run.RunID, "1"))).Task.Status.State)
	require.Equal(t, "completed", d.run(run.RunID).Status)

	task, _ := p.doubts()
	require.Equal(t, "TASK_STATE_CANCELED", p.task("CancelTask", task.ID).Status.State)

	code, _ := rpcError(t, newPeer(d, "assistant").call("SendMessage", p.reply(uuid.NewString(), task.ID, "1")))
	require.Equal(t, -32001, code, "the task of another agent")
}

func chooseOverA2AStreams(t *testing.T, d *filled, _ *signer) {
	t.Helper()

	d.forgets()

	p := newPeer(d, "nl2ql")
	events := p.follow(p.request("SendStreamingMessage", p.ask(uuid.NewString(), doubtful, "")))
	require.Equal(t, "working, generated-query, result-data, input_required", words(events))

	task := events[0].StatusUpdate.TaskID
	subscribed := openStream(t, p.request("SubscribeToTask", `{"id": "`+task+`"}`))
	first, _ := subscribed.next()
	require.Equal(t, "task input_required", first.String())

	message := p.reply(uuid.NewString(), task, "2")
	require.Equal(t, "working, generated-query, result-data, completed", words(p.follow(p.request("SendStreamingMessage", message))))
	require.Equal(t, "working, generated-query, result-data, completed", words(p.follow(p.request("SendStreamingMessage", message))), "again")

	var seen []a2aEvent
	for event, more := subscribed.next(); more; event, more = subscribed.next() {
		seen = append(seen, event)
	}

	require.Equal(t, "working, generated-query, result-data, completed", words(seen), "a subscriber is told until the end")

	// A subscriber whose token is revoked is told no more, even while the task waits.
	waits, _ := p.doubts()
	revoked := *d
	made := call(t, http.MethodPost, d.s.url+"/user/tokens", d.bearer, `{"name": "`+uuid.NewString()+`"}`)
	revoked.bearer = value(t, made)
	stream := openStream(t, newPeer(&revoked, "nl2ql").request("SubscribeToTask", `{"id": "`+waits.ID+`"}`))
	stream.next()

	var token struct{ ID string }

	made.json(t, &token)
	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, d.s.url+"/user/tokens/"+token.ID, d.bearer, "").status)

	rest, err := io.ReadAll(stream.lines)
	require.NoError(t, err)
	require.Contains(t, string(rest), `"reason":"UNAUTHORIZED"`)
	d.forgets()

	p = newPeer(d, "assistant")
	events = p.follow(p.request("SendStreamingMessage", p.ask(uuid.NewString(), doubtful, "")))
	require.Equal(t, "task submitted, working, plan, instruction, input_required", words(events))

	task = events[0].Task.ID
	events = p.follow(p.request("SendStreamingMessage", p.reply(uuid.NewString(), task, "1")))
	require.NotNil(t, events[0].Task, "a stream begins with the task")
	require.Equal(t, task, events[0].Task.ID)

	if last := events[len(events)-1]; last.Task != nil { // the run was faster than the stream
		require.Equal(t, "task completed", last.String())
	} else {
		require.Equal(t, "completed", last.String())
	}

	// Messages have ids of their own.
	run := d.choosing(doubtful)
	before := newPeer(d, "nl2ql").task("GetTask", run.RunID)
	d.chosen(run.RunID, 1)
	after := newPeer(d, "nl2ql").task("GetTask", run.RunID)
	require.NotEqual(t, before.Status.Message.MessageID, after.Status.Message.MessageID)
}

func chooseOtherWords(t *testing.T, d *filled, _ *signer) {
	t.Helper()

	p := newPeer(d, "nl2ql")
	task, _ := p.doubts()
	message := p.reply(uuid.NewString(), task.ID, "How many refunds are there?")
	next := *rpcResult(t, p.call("SendMessage", message)).Task
	require.NotEqual(t, task.ID, next.ID)
	require.Equal(t, task.ContextID, next.ContextID)
	require.Equal(t, "TASK_STATE_COMPLETED", next.Status.State)
	require.Equal(t, "answer", next.Status.Message.Metadata["outcome"])
	require.Equal(t, next.ID, rpcResult(t, p.call("SendMessage", message)).Task.ID, "a repeated message")

	closed := p.task("GetTask", task.ID)
	require.Equal(t, "TASK_STATE_COMPLETED", closed.Status.State)
	require.Equal(t, "clarification", closed.Status.Message.Metadata["outcome"])

	code, _ := rpcError(t, p.call("SendMessage", p.reply(uuid.NewString(), task.ID, "1")))
	require.Equal(t, -32004, code)

	task, _ = p.doubts()
	other := fmt.Sprintf(`{"message": {"messageId": %q, "taskId": %q, "contextId": %q, "role": "ROLE_USER", "parts": [{"text": "1"}]}}`, uuid.NewString(), task.ID, next.ContextID)
	code, _ = rpcError(t, p.call("SendMessage", other))
	require.Equal(t, -32602, code, "the context of another task")
	require.Equal(t, "TASK_STATE_INPUT_REQUIRED", p.task("GetTask", task.ID).Status.State)
}
