package a2a

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	protocol "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/webhook"
)

// CreateTaskPushConfig creates a push notification config for a task, or replaces the one with the same id.
func (h handler) CreateTaskPushConfig(ctx context.Context, config *protocol.PushConfig) (*protocol.PushConfig, error) {
	found, err := h.findOf(ctx, config.TaskID)
	if err != nil {
		return nil, err
	}

	made, err := h.Push.SetPush(ctx, h.who, found, pushOf(config))
	if err != nil {
		return nil, err
	}

	made.Credentials = ""

	return configOf(config.TaskID, made), nil
}

// findOf returns the run of a task, if it is a task of the caller and of this agent.
func (h handler) findOf(ctx context.Context, task protocol.TaskID) (uuid.UUID, error) {
	if task == "" {
		return uuid.Nil, invalidField("taskId", "is required")
	}

	found, err := h.find(ctx, task)

	return found.ID, err
}

// checkPush validates the push notification config of a message before its run is started.
func (h handler) checkPush(config *protocol.SendMessageConfig) error {
	if config == nil || config.PushConfig == nil {
		return nil
	}

	err := h.Push.CheckPush(pushOf(config.PushConfig))
	if err == nil {
		return nil
	}

	known := fault.From(err)
	for i := range known.Subs {
		known.Subs[i].Code = "configuration.taskPushNotificationConfig." + known.Subs[i].Code
	}

	return known
}

// setPush creates the push notification config of a message for its run. Without an id it gets the id of the task, so that a message that is
// sent again replaces its config.
func (h handler) setPush(ctx context.Context, config *protocol.SendMessageConfig, run uuid.UUID) error {
	if config == nil || config.PushConfig == nil {
		return nil
	}

	push := pushOf(config.PushConfig)
	push.ID = cmp.Or(push.ID, run.String())

	_, err := h.Push.SetPush(ctx, h.who, run, push)

	return err
}

// GetTaskPushConfig returns one push notification config of a task.
func (h handler) GetTaskPushConfig(ctx context.Context, request *protocol.GetTaskPushConfigRequest) (*protocol.PushConfig, error) {
	list, err := h.ListTaskPushConfigs(ctx, &protocol.ListTaskPushConfigRequest{TaskID: request.TaskID})
	if err != nil {
		return nil, err
	}

	i := slices.IndexFunc(list.Configs, func(c *protocol.PushConfig) bool { return c.ID == request.ID })
	if i < 0 {
		return nil, noPush()
	}

	return list.Configs[i], nil
}

func noPush() error {
	return protocol.NewError(protocol.ErrTaskNotFound, "The task has no push notification config with this id.")
}

// ListTaskPushConfigs returns all push notification configs of a task. A task has few, so there is one page.
func (h handler) ListTaskPushConfigs(ctx context.Context, request *protocol.ListTaskPushConfigRequest) (*protocol.ListTaskPushConfigResponse, error) {
	found, err := h.findOf(ctx, request.TaskID)
	if err != nil {
		return nil, err
	}

	list, err := h.Push.Pushes(ctx, h.who, found)
	if err != nil {
		return nil, err
	}

	configs := make([]*protocol.PushConfig, len(list))
	for i, p := range list {
		configs[i] = configOf(request.TaskID, p)
	}

	return &protocol.ListTaskPushConfigResponse{Configs: configs}, nil
}

// DeleteTaskPushConfig deletes one push notification config of a task.
func (h handler) DeleteTaskPushConfig(ctx context.Context, request *protocol.DeleteTaskPushConfigRequest) error {
	found, err := h.findOf(ctx, request.TaskID)
	if err != nil {
		return err
	}

	return orElse(h.Push.DeletePush(ctx, h.who, found, request.ID), noPush())
}

func pushOf(config *protocol.PushConfig) webhook.Push {
	p := webhook.Push{ID: config.ID, URL: config.URL, Token: config.Token}
	if config.Auth != nil {
		p.Scheme, p.Credentials = config.Auth.Scheme, config.Auth.Credentials
	}

	return p
}

func configOf(task protocol.TaskID, p webhook.Push) *protocol.PushConfig {
	config := &protocol.PushConfig{TaskID: task, ID: p.ID, URL: p.URL, Token: p.Token}
	if p.Scheme != "" {
		config.Auth = &protocol.PushAuthInfo{Scheme: p.Scheme, Credentials: p.Credentials}
	}

	return config
}

// Notification returns the body of a push notification: the current status of the task, as the caller may see it, in the form of a stream event.
//
// Faults: NotFound.
func (a *Agents) Notification(ctx context.Context, who auth.Principal, run uuid.UUID) ([]byte, error) {
	found, err := a.Runs.Get(ctx, who, run)
	if err != nil {
		return nil, err
	}

	i := slices.IndexFunc(a.agents, func(p profile) bool { return p.name == found.Agent })
	if i < 0 {
		return nil, fault.Absent()
	}

	task, err := handler{Agents: a, agent: a.agents[i], who: who}.task(ctx, found)
	if err != nil {
		return nil, err
	}

	update := &protocol.TaskStatusUpdateEvent{TaskID: task.ID, ContextID: task.ContextID, Status: task.Status}

	return json.Marshal(protocol.StreamResponse{Event: update})
}
