package a2a

import (
	"context"
	"encoding/json"
	"slices"

	protocol "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/webhook"
)

// CreateTaskPushConfig makes push notifications for a task, or replaces those with the same id.
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

// checkPush checks the push notifications of a message before its run is started.
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

// setPush makes the push notifications of a message for its run. A message that is sent again replaces them.
func (h handler) setPush(ctx context.Context, config *protocol.SendMessageConfig, run uuid.UUID) error {
	if config == nil || config.PushConfig == nil {
		return nil
	}

	_, err := h.Push.SetPush(ctx, h.who, run, pushOf(config.PushConfig))

	return err
}

// GetTaskPushConfig returns push notifications of a task.
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

// ListTaskPushConfigs returns all push notifications of a task. There are few, so there is one page.
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

// DeleteTaskPushConfig ends push notifications of a task.
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

// Notification returns the status of the task of a run as the caller may see it now, in the form of a stream: the body of a push notification.
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
