// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kube connects a configsync.Syncer with the API server: sources of the wanted config, a fetcher of
// ConfigMaps, and reporters.
//
// [NodeConfigSource] reads a NodeConfig, [NewAnnotationSource] an annotation of the Node, [NewLegacySource] the field
// spec.configSource, which API servers drop since 1.26. [NewConfigMapFetcher] gets what they name.
// [NewNodeConditionReporter] reports the ConfigOK condition of the Node, [NewStatusReporter] the status of the
// NodeConfig; configsync.Joined makes one reporter of both. [NewClient] makes the client that they all use, [Install]
// what the API server needs to know NodeConfigs. [RunAgent] is all of it in one call:
//
//	package example
//
//	import (
//		"context"
//
//		"github.com/belayproject/belay/configsync"
//		"github.com/belayproject/belay/configsync/kube"
//		"github.com/belayproject/belay/configsync/restart"
//		"k8s.io/client-go/rest"
//	)
//
//	type settings struct{ Workers int }
//
//	func run(ctx context.Context, config *rest.Config, node string, store configsync.Store) error {
//		return kube.RunAgent(ctx, config, kube.AgentOptions[settings]{
//			Node: node,
//			Syncer: configsync.Options[settings]{
//				Version: "v1.0.0", Key: "agent", Codec: configsync.YAML[settings](configsync.YAMLOptions{}),
//				Default: func() settings { return settings{Workers: 1} },
//				Store:   store, Restarter: restart.Exit{Code: 75}, // start it again with another config
//			},
//			Work: func(ctx context.Context, active configsync.Active[settings]) error {
//				<-ctx.Done() // work with active.Config until then
//				return nil
//			},
//		})
//	}
//
// # Promise
//
//   - A source is either absent, valid or invalid. Only where no source is set is it absent. An object that does not
//     exist is missing, never absent: a deletion by mistake resets no node.
//   - What is fetched is the object that was named, or an error that names both: by UID, by digest, by namespace and name. A ConfigMap
//     that may change under its name is refused unless the source carries a digest or follows edits.
//   - Errors say which of these holds: the server answered that there is nothing, that it may not be read, that it is another one,
//     or there was no answer. Only the last one is [configsync.ErrUnreachable], which also stands for a server that doesn't know
//     who is asking, and for an answer above [configsync.MaxObject].
//   - Each call has a deadline. Changes are learned from watches of single objects, never by polling; a watch outlives restarts of
//     the API server, expired versions, and kinds that aren't installed yet. One whose connection failed goes on from where it was; only an answer
//     of the API server has it list again.
//   - A report that changes nothing writes nothing. What is written is read back: a part that the API server dropped is [ErrDropped].
//     Nothing of others is changed: conditions are applied by key, by [FieldManager], to the object that was read, and the status of a NodeConfig to the
//     version that was read or watched.
//   - An adoption is three calls: the ConfigMap is read, and the status of the NodeConfig and the condition of the Node are written, each once
//     ([NodeConfigSource.StatusReporter]). What the watch has just brought is not read again. It is never older than what was read before, and
//     after two minutes without news it is read.
//   - Contents of configs appear in no error and no log.
//
// # No promise
//
// A report may come late or not at all while the API server is away. A reporter doesn't retry; its caller does.
// What [NewNodeConditionReporter] returns overwrites the condition of any other writer of that type.
//
// # Rights
//
// Each with the names of the node's own objects, and no more ([NodeConfigRules] and its like return them as rules):
//
//	NewNodeConfigSource       get, list, watch of nodeconfigs.belay.dev
//	NewStatusReporter         get of nodeconfigs.belay.dev, patch of nodeconfigs.belay.dev/status
//	NewAnnotationSource       get, list, watch of nodes
//	NewLegacySource           get, list, watch of nodes
//	NewNodeConditionReporter  get of nodes, patch of nodes/status
//	NewConfigMapFetcher       get of configmaps; list, watch only for configs that are followed
//
// Lists and watches select one name, so that a right on that name is enough. RBAC can't tell the fields of a status
// apart: a right to patch nodes/status is one to patch all of it. The Node authorizer gives a kubelet's own
// credentials the rights on its Node, and on the ConfigMaps that its pods use only: for others it needs a Role.
//
// # Concurrency
//
// Every part may be used by several goroutines. Watches own their goroutines and end with their context.
//
// # Crash behaviour
//
// No part keeps anything that matters on a restart. A reporter of the condition that is new renews the heartbeat of the
// condition once.
package kube
