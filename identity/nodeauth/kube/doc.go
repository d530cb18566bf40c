// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kube installs the policy of identity/nodeauth, which holds each agent to its own node, and the rights that it
// guards:
//
//	package main
//
//	import (
//		"context"
//		"log"
//		"time"
//
//		corev1 "k8s.io/api/core/v1"
//		"k8s.io/apimachinery/pkg/types"
//		"k8s.io/client-go/tools/clientcmd"
//
//		"github.com/belayproject/belay/identity/nodeauth"
//		"github.com/belayproject/belay/identity/nodeauth/kube"
//	)
//
//	func main() {
//		config, err := clientcmd.BuildConfigFromFlags("", clientcmd.RecommendedHomeFile)
//		if err != nil {
//			log.Fatal(err)
//		}
//		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
//		defer cancel()
//		err = kube.Install(ctx, config, nodeauth.Options{
//			Name:           "my-agent",
//			ServiceAccount: types.NamespacedName{Namespace: "my-system", Name: "agent"},
//			NodeConditions: []corev1.NodeConditionType{"example.com/Checked"},
//		})
//		if err != nil {
//			log.Fatal(err)
//		}
//	}
//
// # Promise
//
// No agent gets a right before one API server was seen to refuse, by the policy, what the right would allow too much.
// An installation may be repeated.
//
// # No promise
//
// Nothing is removed. Another API server of the cluster may obey the policy a moment later.
//
// # Concurrency
//
// Installations of one name at the same time end as one of them would.
//
// # Crash behaviour
//
// An installation that was cut short leaves the policy without the rights, or with some: installing again goes on.
package kube
