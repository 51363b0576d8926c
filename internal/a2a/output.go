package a2a

import (
	"cmp"
	"iter"
	"slices"

	protocol "github.com/a2aproject/a2a-go/v2/a2a"
)

// outputModes are the media types that a client accepts; none means all.
type outputModes []string

func modesOf(config *protocol.SendMessageConfig) outputModes {
	if config == nil {
		return nil
	}

	return config.AcceptedOutputModes
}

// task leaves out of a task the parts that the client does not accept, and artifacts that have no others.
func (m outputModes) task(task *protocol.Task) *protocol.Task {
	if len(m) == 0 {
		return task
	}

	task.Artifacts = slices.DeleteFunc(task.Artifacts, func(a *protocol.Artifact) bool { return !m.artifact(a) })
	m.message(task.Status.Message)

	return task
}

// stream leaves out of events the parts that the client does not accept.
func (m outputModes) stream(events iter.Seq2[protocol.Event, error]) iter.Seq2[protocol.Event, error] {
	if len(m) == 0 {
		return events
	}

	return func(yield func(protocol.Event, error) bool) {
		for event, err := range events {
			switch event := event.(type) {
			case *protocol.Task:
				m.task(event)
			case *protocol.TaskStatusUpdateEvent:
				m.message(event.Status.Message)
			case *protocol.TaskArtifactUpdateEvent:
				if !m.artifact(event.Artifact) {
					continue
				}
			}

			if !yield(event, err) {
				return
			}
		}
	}
}

// artifact removes the parts that are not accepted and reports whether any is left.
func (m outputModes) artifact(a *protocol.Artifact) bool {
	a.Parts = m.parts(a.Parts)

	return len(a.Parts) > 0
}

// message removes parts that are not accepted. A message keeps its first part, which is text: it says how the task ended.
func (m outputModes) message(said *protocol.Message) {
	if said == nil || len(said.Parts) == 0 {
		return
	}

	if said.Parts = m.parts(said.Parts[1:], said.Parts[0]); m.plain() {
		said.Parts[0].MediaType = ""
	}
}

func (m outputModes) parts(parts []*protocol.Part, kept ...*protocol.Part) []*protocol.Part {
	for _, part := range parts {
		mode := cmp.Or(part.MediaType, plainText)
		if mode == markdown && m.plain() {
			part.MediaType, mode = "", plainText // Markdown is text that people can read
		}

		if accepts(m, mode) {
			kept = append(kept, part)
		}
	}

	return kept
}

// plain reports whether the client wants text and no Markdown.
func (m outputModes) plain() bool { return accepts(m, plainText) && !accepts(m, markdown) }
