package dev.kopf.clients;

import io.javaoperatorsdk.operator.api.reconciler.Cleaner;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.api.reconciler.ControllerConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.DeleteControl;
import io.javaoperatorsdk.operator.api.reconciler.Reconciler;
import io.javaoperatorsdk.operator.api.reconciler.UpdateControl;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** Reports the size of a widget in its status, and notes widgets that are deleted. */
@ControllerConfiguration(name = "widget", finalizerName = "clients.kopf.dev/finalizer")
public class WidgetReconciler implements Reconciler<Widget>, Cleaner<Widget> {
  static final Set<String> CLEANED = ConcurrentHashMap.newKeySet();

  @Override
  public UpdateControl<Widget> reconcile(Widget widget, Context<Widget> context) {
    var status = new Widget.Status();
    status.seen = widget.getSpec().size;
    widget.setStatus(status);
    widget.getMetadata().setManagedFields(null);
    return UpdateControl.patchStatus(widget);
  }

  @Override
  public DeleteControl cleanup(Widget widget, Context<Widget> context) {
    CLEANED.add(widget.getMetadata().getName());
    return DeleteControl.defaultDelete();
  }
}
