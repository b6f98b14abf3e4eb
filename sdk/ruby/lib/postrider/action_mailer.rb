# frozen_string_literal: true

require "active_support"
require "active_support/lazy_load_hooks"
require_relative "../postrider"
require_relative "delivery_method"

# Makes `:postrider` a delivery method of ActionMailer.
ActiveSupport.on_load(:action_mailer) do
  add_delivery_method :postrider, Postrider::DeliveryMethod
end
