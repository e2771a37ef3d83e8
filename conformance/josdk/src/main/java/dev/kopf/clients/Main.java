package dev.kopf.clients;

import io.fabric8.kubernetes.api.model.ObjectMetaBuilder;
import io.fabric8.kubernetes.api.model.apiextensions.v1.CustomResourceDefinition;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.javaoperatorsdk.operator.Operator;
import java.util.concurrent.TimeUnit;

/** An operator of the Java Operator SDK, and a user of it, on the cluster of KUBECONFIG. */
public class Main {
  private static final int SECONDS_MAX = 180;
  private static final String DEFINITION =
      """
      apiVersion: apiextensions.k8s.io/v1
      kind: CustomResourceDefinition
      metadata: {name: widgets.clients.kopf.dev}
      spec:
        group: clients.kopf.dev
        names: {kind: Widget, plural: widgets, singular: widget, listKind: WidgetList}
        scope: Namespaced
        versions:
          - name: v1
            served: true
            storage: true
            subresources: {status: {}}
            schema:
              openAPIV3Schema:
                type: object
                properties:
                  spec: {type: object, properties: {size: {type: integer}}}
                  status: {type: object, properties: {seen: {type: integer}}}
      """;

  public static void main(String[] arguments) {
    try (KubernetesClient client = new KubernetesClientBuilder().build()) {
      var definition = client.getKubernetesSerialization().unmarshal(DEFINITION, CustomResourceDefinition.class);
      var definitions = client.apiextensions().v1().customResourceDefinitions();
      definitions.resource(definition).serverSideApply();
      definitions.withName("widgets.clients.kopf.dev").waitUntilCondition(Main::isEstablished, SECONDS_MAX, TimeUnit.SECONDS);
      var operator = new Operator(it -> it.withKubernetesClient(client).withCloseClientOnStop(false));
      operator.register(new WidgetReconciler());
      operator.start();
      System.out.println("the operator has started");

      var widgets = client.resources(Widget.class).inNamespace("default");
      var widget = new Widget();
      widget.setMetadata(new ObjectMetaBuilder().withName("w").withNamespace("default").build());
      widget.setSpec(new Widget.Spec());
      widget.getSpec().size = 1;
      widgets.resource(widget).create();
      widgets.withName("w").waitUntilCondition(it -> hasSeen(it, 1), SECONDS_MAX, TimeUnit.SECONDS);
      System.out.println("a new widget was handled");

      widgets.withName("w").edit(it -> {
        it.getSpec().size = 2;
        return it;
      });
      widgets.withName("w").waitUntilCondition(it -> hasSeen(it, 2), SECONDS_MAX, TimeUnit.SECONDS);
      System.out.println("a changed widget was handled");

      widgets.withName("w").delete();
      widgets.withName("w").waitUntilCondition(it -> it == null, SECONDS_MAX, TimeUnit.SECONDS);
      if (!WidgetReconciler.CLEANED.contains("w")) {
        throw new IllegalStateException("the widget went without its cleanup");
      }
      System.out.println("a deleted widget was cleaned up");
      operator.stop();
      System.out.println("4 passed, 0 failed");
    }
    System.exit(0);
  }

  private static boolean isEstablished(CustomResourceDefinition definition) {
    return definition != null
        && definition.getStatus() != null
        && definition.getStatus().getConditions().stream()
            .anyMatch(it -> it.getType().equals("Established") && it.getStatus().equals("True"));
  }

  private static boolean hasSeen(Widget widget, int size) {
    return widget != null && widget.getStatus() != null && widget.getStatus().seen == size;
  }
}
