// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/belayproject/belay/drain"
	"github.com/belayproject/belay/examples/internal/drain/settings"
)

// shortCall bounds each request of a cordon or uncordon where --request-timeout does not.
const shortCall = 10 * time.Second

// cordonManager owns a cordon that a person has set: it is not that of the drains, which leave such a cordon as it is.
const cordonManager = "belay-cordon"

// setCordon closes nodes to new pods, or opens them. It goes on after a node that it could not write.
func (a *app) setCordon(ctx context.Context, s *settings.Cordon, unschedulable bool) error {
	a.quietLog(&s.Connection)
	config, err := s.RESTConfig()
	if err != nil {
		return err
	}
	config.Timeout = cmp.Or(s.RequestTimeout(), shortCall)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	nodes, err := findNodes(ctx, client, &s.Nodes)
	if err != nil {
		return fmt.Errorf("reading nodes from %s: %w", config.Host, explainUnauthorized(err))
	}
	var errs []error
	for _, node := range nodes {
		if err := a.cordonNode(ctx, client, s, node, unschedulable); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// findNodes reads the nodes that are meant. All of them exist.
func findNodes(ctx context.Context, client kubernetes.Interface, n *settings.Nodes) ([]*corev1.Node, error) {
	var found []*corev1.Node
	if n.Selector != "" {
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: n.Selector})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			found = append(found, &list.Items[i])
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("no node matches --selector=%q; nothing was done", n.Selector)
		}
		return found, nil
	}
	var missing []string
	for _, name := range n.Names {
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, fmt.Sprintf("%q", name))
		case err != nil:
			return nil, err
		}
		found = append(found, node)
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("there is no node %s; nothing was done", strings.Join(missing, ", "))
	}
	return found, nil
}

// cordonNode changes one node and prints what kubectl prints.
func (a *app) cordonNode(
	ctx context.Context, client kubernetes.Interface, s *settings.Cordon, node *corev1.Node, unschedulable bool,
) error {
	verb := "uncordoned"
	if unschedulable {
		verb = "cordoned"
	}
	if node.Spec.Unschedulable == unschedulable {
		return a.printNode(node.Name, "already "+verb, s.DryRun)
	}
	mine := slices.Contains(holders(node), s.Holder.Name)
	if !unschedulable && mine && s.DryRun == settings.DryRunNone {
		if err := a.releaseOwn(ctx, s, node.Name); err != nil {
			return err
		}
		after, err := client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading node %q: %w", node.Name, err)
		}
		node = after
	}
	if node.Spec.Unschedulable != unschedulable && s.DryRun != settings.DryRunClient {
		options := metav1.PatchOptions{FieldManager: cordonManager}
		if s.DryRun == settings.DryRunServer {
			options.DryRun = []string{metav1.DryRunAll}
		}
		patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, unschedulable)
		if _, err := client.CoreV1().Nodes().Patch(ctx, node.Name, types.StrategicMergePatchType, patch,
			options); err != nil {
			return fmt.Errorf("writing node %q: %w", node.Name, err)
		}
	}
	if !unschedulable {
		a.warnOthers(node, s.Holder.Name)
	}
	return a.printNode(node.Name, verb, s.DryRun)
}

// warnOthers says whose drains an uncordon stops.
func (a *app) warnOthers(node *corev1.Node, holder string) {
	for _, other := range holders(node) {
		if other != holder {
			fmt.Fprintf(a.errs, "drain: node %s is marked by %s, whose drain pauses until the node is cordoned again or "+
				"given back: %s\n",
				node.Name, other, releaseLine([]string{node.Name}, other))
		}
	}
}

// releaseOwn takes the holder's own mark off a node, and what its drain has asked of pods.
func (a *app) releaseOwn(ctx context.Context, s *settings.Cordon, node string) error {
	set := drain.Set{MaxNodes: intstr.FromInt32(1), Request: drain.Request{Holder: s.Holder.Name, Mode: drain.Release}}
	return a.run(ctx, task{connection: &s.Connection, nodes: settings.Nodes{Names: []string{node}}, json: true,
		quiet: true, set: set})
}

// printNode prints one line in the form of kubectl.
func (a *app) printNode(name, verb string, dry settings.DryRun) error {
	suffix := map[settings.DryRun]string{settings.DryRunClient: " (dry run)",
		settings.DryRunServer: " (server dry run)"}[dry]
	_, err := fmt.Fprintf(a.out, "node/%s %s%s\n", name, verb, suffix)
	return err
}
